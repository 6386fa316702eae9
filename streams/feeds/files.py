"""One file of a watched folder: what it is at this moment, and its bytes read with care."""

from __future__ import annotations

import json
import os
from errno import ELOOP, ENOENT, ENOTDIR
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import Final, NamedTuple

from .base import MAX_PAYLOAD

UNFIT: Final = "-"


class Stamp(NamedTuple):
    """What tells one content of a file from the next without reading it."""

    inode: int
    size: int
    modified: int
    """Nanoseconds since 1970. Programs that copy a file may set it back."""
    changed: int
    """Nanoseconds since 1970, of any change to content, name or rights; nobody can set it."""

    def moved(self) -> tuple[int, int, int]:
        """What stays when a file gets another name."""
        return self.inode, self.size, self.modified


class State(NamedTuple):
    """What a folder feed remembers of one file."""

    stamp: Stamp | None
    """None where it was never read."""
    digest: str
    """Of its bytes; "" where they could not be read and may be tomorrow, UNFIT where they are no document."""
    held: bool
    """Whether the index may have a document of it."""
    fault: str = ""
    """Why it was refused, as it was said."""

    def __str__(self) -> str:
        return json.dumps([self.stamp, self.digest, self.held, self.fault], ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> State:
        """The state written by `str`; "" stands for a document that may have been sent."""
        if not text:
            return cls(None, "", True)
        stamp, seen, held, fault = json.loads(text)
        return cls(None if stamp is None else Stamp(*stamp), seen, held, fault)


class Refused(Exception):
    """A file that is not read; `data` is its head."""

    def __init__(self, reason: str, data: bytes = b"", *, may_pass: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.data = data[:MAX_PAYLOAD]
        self.may_pass = may_pass
        """Whether the fault is none of the file's: what it held before may still be true, and it is tried again."""


class Content(NamedTuple):
    """A file's bytes, and what it was when they were read."""

    data: bytes
    stamp: Stamp
    digest: str
    is_whole: bool
    """False where it was written to meanwhile."""


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file, of its target where it is a link; None where nothing can be said."""
    try:
        return _stamp(path.stat())
    except OSError:
        return None


def read(path: Path, root: str, most: int) -> Content:
    """Read a file of at most `most` bytes. `root` is the real path of the folder it must lie in.

    Raises Refused for one that is larger, cannot be opened, is no regular file, or is a link out of the folder.
    """
    try:
        target = os.path.realpath(path, strict=True)
        if not Path(target).is_relative_to(root):
            raise Refused("this link leads out of the folder; copy the file, or read its own folder")
        # Without O_NONBLOCK, opening a named pipe would wait for somebody to write into it.
        with open(os.open(target, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            before = os.fstat(file.fileno())
            if not S_ISREG(before.st_mode):
                raise Refused("this is no regular file")
            data = file.read(most + 1)
            after = os.fstat(file.fileno())
    except OSError as error:
        may_pass = error.errno not in (ENOENT, ELOOP, ENOTDIR)
        raise Refused(f"this file cannot be read: {error.strerror}", may_pass=may_pass) from error
    if len(data) > most:
        raise Refused(f"this file has {after.st_size} bytes, the limit is {most}; split it", data)
    digest = blake2b(data, digest_size=16).hexdigest()
    return Content(data, _stamp(before), digest, _stamp(before) == _stamp(after))


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
