"""Locks between processes: of the one that writes a namespace, and of whoever looks after files that many share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import WriterBusy

_FIRM = ", which makes it anew"
"""What a firm lock says of its holder."""

OPEN_LOCK = "open.lock"
"""In a folder of files that many processes share: held by whoever makes, moves or removes some of them."""


class WriterLock:
    """The courtesy lock, held by one process: a second writer on the same machine gets a clear error and no fight.

    The epoch in the manifest is what really fences; this only warns early.
    """

    def __init__(
        self,
        path: Path,
        *,
        what: str | None = None,
        firm: bool = False,
        hint: str = "stop that process first; if it hangs, `gistream serve --take-over` fences it",
    ) -> None:
        """`what` is being written and `hint` are for the message of WriterBusy; unset is the lock's folder.

        Nobody passes by a lock that is `firm`: what its holder does is not fenced by an epoch.
        """
        self.path = path
        self._what = what or str(path.parent)
        self._hint = hint
        self._firm = firm
        self._file: int | None = None

    def acquire(self, *, take_over: bool) -> None:
        """Take the lock, or raise WriterBusy naming its holder. With `take_over` a held lock is passed by.

        Whoever passed by one may ask again, and holds it once it is free; so does whoever holds it already.
        """
        if self._file is not None:
            return
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 64, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            if take_over and not holder.endswith(_FIRM):
                return
            raise WriterBusy(f"{self._what} is being written by process {holder}", hint=self._hint) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}{_FIRM if self._firm else ''}\n".encode(), 0)
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def alone(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock on a file, which is made with its folder where it is missing; False where another has it.

    With `wait` it is waited for. Whoever ends, or is killed, lets go of it. The folder may be removed while it is held.
    """
    file = _locked(path, wait=wait)
    try:
        yield file is not None
    finally:
        if file is not None:
            os.close(file)


def stands(path: Path, file: int) -> bool:
    """Whether `path` is still the file that was opened as the descriptor `file`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _locked(path: Path, *, wait: bool) -> int | None:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            # The folder was removed in between.
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(file)
            return None
        except BaseException:
            os.close(file)
            raise
        if stands(path, file):
            return file
        # It was removed while we waited: whoever comes now takes the new one.
        os.close(file)
