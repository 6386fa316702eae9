"""Events as JSON lines: from a pipe, from a file, and from a file that grows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Event
from typing import BinaryIO, Final, NamedTuple

from index.errors import InvalidEvent, NotFound

from ..events import DEFAULT_LIMITS, Limits, decode
from .base import MAX_PAYLOAD, Memory, Rejected, Step

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_LOOK_SECONDS: Final = 0.5
_HEAD: Final = 1024
"""Bytes by which a file that was written anew is told from one that has grown."""


class _Place(NamedTuple):
    """How far a file has been read."""

    offset: int = 0
    line: int = 0
    head: str = ""
    """Digest of its first bytes, at most _HEAD, as far as they had been read."""


class JsonLines:
    """One event a line, as `decode` reads it; `{"id": …, "text": …}` is enough. Blank lines are skipped.

    `source` is a file, or a binary stream such as standard input, which stays open. Of a file the cursor says how far
    it was read: lines that were added are new, and a file that begins otherwise or is shorter is read from its start.
    No line takes more memory than an event within `limits` may.
    """

    def __init__(
        self,
        source: Path | BinaryIO,
        default_namespace: str,
        *,
        name: str = "standard input",
        limits: Limits = DEFAULT_LIMITS,
        grows: bool = False,
    ) -> None:
        """`grows`: a last line without its end is still being written, and waits for it."""
        self.name = str(source) if isinstance(source, Path) else name
        self.skipped: Mapping[str, int] = {}
        self._source = source
        self._default_namespace = default_namespace
        self._limits = limits
        self._grows = grows
        self._seen: tuple[int, int, int] | None = None

    def poll(self, memory: Memory) -> Iterator[Step]:
        """See Feed. Raises NotFound for a file that cannot be opened."""
        if not isinstance(self._source, Path):
            for step, _ in self._steps(self._source, _Place()):
                yield step
            return
        try:
            stream = self._source.open("rb")
        except OSError as error:
            raise NotFound(
                f"cannot read the events of {self.name}: {error.strerror}", hint="name a readable file"
            ) from error
        with stream:
            place = _Place(*json.loads(memory.cursor)) if memory.cursor else _Place()
            status = os.fstat(stream.fileno())
            self._seen = _sight(status)
            if place.offset > status.st_size or _head(stream, place.offset) != place.head:
                place = _Place()
            stream.seek(place.offset)
            for step, after in self._steps(stream, place):
                head = place.head if place.offset >= _HEAD else ""
                cursor = after._replace(head=head or _head(stream, after.offset))
                place = cursor
                yield Step(step.events, step.rejected, cursor=json.dumps(cursor))

    def wait(self, stop: Event) -> None:
        """Until the file is not what it was."""
        while not stop.wait(_LOOK_SECONDS):
            try:
                if isinstance(self._source, Path) and _sight(self._source.stat()) != self._seen:
                    return
            except OSError:
                return

    def _steps(self, stream: BinaryIO, place: _Place) -> Iterator[tuple[Step, _Place]]:
        """One step for each line that says something, and the place behind it."""
        longest = self._limits.event_bytes
        while line := stream.readline(longest + 1):
            size, is_long = len(line), len(line) > longest and not line.endswith(b"\n")
            if is_long:
                size += _skip_line(stream)
            elif self._grows and not line.endswith(b"\n"):
                return
            place = _Place(place.offset + size, place.line + 1)
            where = f"line {place.line}"
            if is_long:
                reason = f"a line of {size} bytes; within the limits none has more than {longest}. Split the document"
                yield Step(rejected=(Rejected(self.name, where, reason, line[:MAX_PAYLOAD]),)), place
                continue
            payload = line.removeprefix(_BYTE_ORDER_MARK if place.line == 1 else b"").strip()
            if not payload:
                continue
            try:
                yield Step((decode(payload, self._limits, self._default_namespace),)), place
            except InvalidEvent as error:
                yield Step(rejected=(Rejected(self.name, where, str(error), payload),)), place


def _sight(status: os.stat_result) -> tuple[int, int, int]:
    """What tells that a file was written to."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def _head(stream: BinaryIO, read: int) -> str:
    """Digest of the first bytes of a file of which `read` have been read; its position stays."""
    here = stream.tell()
    stream.seek(0)
    head = stream.read(min(read, _HEAD))
    stream.seek(here)
    return blake2b(head, digest_size=16).hexdigest() if read else ""


def _skip_line(stream: BinaryIO) -> int:
    """Read on to the end of the line; its number of bytes."""
    skipped = 0
    while piece := stream.readline(MAX_PAYLOAD):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
