"""Events as JSON lines, from a file or a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from index.errors import InvalidEvent, NotFound
from index.types import DocumentEvent

from ..events import DEFAULT_LIMITS, Limits, decode
from .base import MAX_PAYLOAD, Rejected

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JsonLines:
    """One event a line, as `decode` reads it; `{"id": …, "text": …}` is enough. Blank lines are skipped.

    `source` is a file, or a binary stream such as standard input, which stays open. No line takes more memory than an
    event within `limits` may.
    """

    def __init__(
        self,
        source: Path | BinaryIO,
        default_namespace: str,
        *,
        name: str = "standard input",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.name = str(source) if isinstance(source, Path) else name
        self._source = source
        self._default_namespace = default_namespace
        self._limits = limits

    def read(self) -> Iterator[DocumentEvent | Rejected]:
        if not isinstance(self._source, Path):
            yield from self._events(self._source)
            return
        try:
            stream = self._source.open("rb")
        except OSError as error:
            raise NotFound(
                f"cannot read the events of {self.name}: {error.strerror}", hint="name a readable file"
            ) from error
        with stream:
            yield from self._events(stream)

    def _events(self, stream: BinaryIO) -> Iterator[DocumentEvent | Rejected]:
        longest = self._limits.event_bytes
        number = 0
        while line := stream.readline(longest + 1):
            number += 1
            place = f"line {number}"
            if len(line) > longest and not line.endswith(b"\n"):
                size = len(line) + _skip_line(stream)
                reason = f"a line of {size} bytes; within the limits none has more than {longest}. Split the document"
                yield Rejected(self.name, place, reason, line[:MAX_PAYLOAD])
                continue
            payload = line.removeprefix(_BYTE_ORDER_MARK if number == 1 else b"").strip()
            if not payload:
                continue
            try:
                yield decode(payload, self._limits, self._default_namespace)
            except InvalidEvent as error:
                yield Rejected(self.name, place, str(error), payload)


def _skip_line(stream: BinaryIO) -> int:
    """Read on to the end of the line; its number of bytes."""
    skipped = 0
    while piece := stream.readline(MAX_PAYLOAD):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
