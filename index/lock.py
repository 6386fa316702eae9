"""The courtesy lock: a second writer on the same machine gets a clear error instead of a fight."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import WriterBusy

_FIRM = ", which makes it anew"
"""What a firm lock says of its holder."""


class WriterLock:
    """An advisory lock on a file, held by one process.

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
        """Take the lock, or raise WriterBusy naming its holder. With `take_over` a held lock is passed by."""
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
