"""One SQLite file whose transactions are on the disk before they return, shared by threads and processes."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from index.errors import StoreError
from index.exclusive import sync

_APPLICATION = int.from_bytes(b"gist")
_FORMAT = 1
_REMEDY = "Move the file away and start again: what is indexed stays, events not yet applied must be sent again"


class Database:
    """A writing connection behind a lock and a reading one behind another, so readers never wait for an fsync.

    Write-ahead log, synchronous=FULL: COMMIT returns after fsync, unless `synced` is False: then a power loss can take
    the last commits back, and a killed process still cannot. Deleted rows are overwritten (secure_delete), though
    the write-ahead log may hold them until SQLite reuses it. Every failure of SQLite is raised as StoreError, with path
    and remedy.
    """

    def __init__(self, path: Path, schema: Sequence[str], *, busy_seconds: float = 10.0, synced: bool = True) -> None:
        """Open `path`, making folder, file and `schema` (statements that may run again) where they are missing.

        `busy_seconds`: how long to wait for another process. Raises StoreError for a file that cannot be opened, is
        not ours, is damaged, or was written by a newer gistream.
        """
        self.path = path
        self._busy_seconds = busy_seconds
        self._synced = synced
        self._writing, self._reading = threading.Lock(), threading.Lock()
        try:
            _make_folder(path.parent)
        except OSError as error:
            raise StoreError(
                f"cannot make the folder of {path}: {error}", hint="Check the path and its rights"
            ) from error
        with self._explained():
            self._writer = self._connect()
            try:
                self._set_up(schema)
                self._reader = self._connect()
            except BaseException:
                self._writer.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The only write transaction of all threads and processes: durable after the block, undone if it raises."""
        with self._writing, self._explained():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The reading connection; every statement sees all that was committed before it."""
        with self._reading, self._explained():
            yield self._reader

    def version(self) -> int:
        """A number that moves whenever anyone commits, in this process or another: cheap to ask."""
        with self.reading() as connection:
            return int(connection.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._synced else 'NORMAL'}")
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    def _set_up(self, schema: Sequence[str]) -> None:
        tables = self._pragma("schema_version")
        application, version = self._pragma("application_id"), self._pragma("user_version")
        if tables and application != _APPLICATION:
            raise StoreError(f"{self.path} belongs to another program", hint="Choose another data folder")
        if version > _FORMAT:
            raise StoreError(f"{self.path} was written by a newer gistream (format {version})", hint="Upgrade this one")
        self._use_write_ahead_log()
        self._writer.execute("BEGIN IMMEDIATE")
        self._writer.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._writer.execute(f"PRAGMA user_version = {_FORMAT}")
        for statement in schema:
            self._writer.execute(statement)
        self._writer.execute("COMMIT")

    def _use_write_ahead_log(self) -> None:
        # SQLite does not wait here: where two processes make the file at once, one is told "locked" at once.
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                self._writer.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _pragma(self, name: str) -> int:
        value: Any = self._writer.execute(f"PRAGMA {name}").fetchone()[0]
        return int(value)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}", hint=_hint(error)) from error


def _hint(error: sqlite3.Error) -> str:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "Another process kept the file locked for too long: try again"
        case sqlite3.SQLITE_FULL:
            return "Free space on the disk and try again"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return "Check that the file and its folder may be read and written"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return _REMEDY
        case _:
            return "Check the disk, then try again"


def _make_folder(folder: Path) -> None:
    """Make `folder` and sync the ones above, so that a power cut cannot take it away together with what it holds."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync(made.parent)
