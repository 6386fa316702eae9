"""The durable log of the embedded runner: an event is acknowledged once it is fsynced here, and kept until applied."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pydantic import ValidationError

from index.errors import StoreError
from index.token import Token
from index.types import Accepted, DocumentEvent

from .database import Database
from .events import encode

SOURCE: Final = "log"
"""Name of this log in tokens and among the positions of a manifest."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS head (id INTEGER PRIMARY KEY CHECK (id = 0), position INTEGER, stamp INTEGER)",
    "INSERT OR IGNORE INTO head VALUES (0, 0, 0)",
    "CREATE TABLE IF NOT EXISTS events"
    " (position INTEGER PRIMARY KEY, stamp INTEGER, namespace TEXT, id TEXT, payload BLOB)",
    # Entries of an index end with the rowid, which is the position: this one orders a namespace's events.
    "CREATE INDEX IF NOT EXISTS events_by_namespace ON events (namespace)",
    "CREATE TABLE IF NOT EXISTS marks (namespace TEXT PRIMARY KEY, position INTEGER) WITHOUT ROWID",
)

Row = tuple[str, str, bytes]
"""Namespace, document and payload of one event, ready to be stored."""

_POLL_SECONDS = 0.05
"""How often `wait` looks for other processes; appends of its own process wake it at once."""


def stored(event: DocumentEvent) -> Row:
    """The stored form of an event. Raises InvalidEvent when its metadata cannot be written as JSON."""
    return event.namespace, event.id, encode(event)


@dataclass(slots=True)
class _Call:
    """One `append` on its way: the first caller whose turn it is commits all that wait, in one transaction."""

    rows: list[Row]
    positions: range | None = None
    error: Exception | None = None


class Log:
    """Events in order of acceptance, in one SQLite file; an `Inbox`. Safe for threads, and for several processes.

    The position counts all events of the log from 1 and is never used twice; it is the token of its event. The stamp is
    the time of acceptance in microseconds since 1970, moved up where it would not increase: over restarts, over
    processes, and when the clock is set back.
    """

    def __init__(
        self, path: str | Path, *, clock: Callable[[], int] = lambda: time.time_ns() // 1000, busy_seconds: float = 10.0
    ) -> None:
        """Open or make the log. `clock` gives microseconds since 1970. Raises StoreError (see Database)."""
        self.database = Database(Path(path), _SCHEMA, busy_seconds=busy_seconds)
        self.clock = clock
        self._waiting: deque[_Call] = deque()
        self._turn = threading.Lock()
        self._news = threading.Condition()

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        """See Inbox: one token per event; blocks for one fsync, which concurrent callers share.

        Raises InvalidEvent for metadata that is no JSON, StoreError when the file cannot be written (disk full,
        read-only, locked for too long, damaged); none of the call's events is stored then.
        """
        if not events:
            return []
        # Encoded before the turn: what one caller sends wrong or large does not hold the others up.
        call = _Call([stored(event) for event in events])
        self._waiting.append(call)
        with self._turn:
            if call.positions is None and call.error is None:
                self._commit_waiting()
        if call.positions is None:
            raise StoreError(f"{len(events)} events were not accepted: {call.error}") from call.error
        return [str(Token(SOURCE, position)) for position in call.positions]

    def insert(self, connection: sqlite3.Connection, rows: Iterable[Row]) -> range:
        """Store rows inside a transaction of `database`, return their positions; `announce` when it has committed."""
        first, stamp = connection.execute("SELECT position + 1, stamp FROM head").fetchone()
        now = self.clock()
        stamped = []
        for position, row in enumerate(rows, first):
            stamp = max(stamp + 1, now)
            stamped.append((position, stamp, *row))
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", stamped)
        connection.execute("UPDATE head SET position = ?, stamp = ?", (first + len(stamped) - 1, stamp))
        return range(first, first + len(stamped))

    def reserve(self, position: int) -> None:
        """Give no position up to `position` to an event any more."""
        if self.last_position() < position:
            with self.database.transaction() as connection:
                connection.execute("UPDATE head SET position = max(position, ?)", (position,))

    def announce(self) -> None:
        """Wake everyone who waits for events."""
        with self._news:
            self._news.notify_all()

    def read(self, namespace: str, after: int, limit_events: int, limit_bytes: int) -> list[Accepted]:
        """The namespace's next events after position `after`, in order; at least one if there is one, of whatever size.

        `limit_bytes` counts payloads. An event without version has its stamp as version. Raises StoreError for a
        payload that this version of gistream cannot read.
        """
        found: list[tuple[int, int, bytes]] = []
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT position, stamp, payload FROM events"
                " WHERE namespace = ? AND position > ? ORDER BY position LIMIT ?",
                (namespace, after, limit_events),
            )
            for row in rows:
                limit_bytes -= len(row[2])
                if found and limit_bytes < 0:
                    break
                found.append(row)
            rows.close()
        return [self._decode(*row) for row in found]

    def waiting(self, namespace: str, after: int) -> int:
        """How many events of the namespace follow position `after`; costs grow with their number, not their size."""
        with self.database.reading() as connection:
            found = connection.execute(
                "SELECT count(*) FROM events WHERE namespace = ? AND position > ?", (namespace, after)
            )
            return int(found.fetchone()[0])

    def waiting_since(self, namespace: str, after: int) -> int | None:
        """Stamp of the namespace's first event after position `after`, None without one; cheap at any backlog."""
        with self.database.reading() as connection:
            found = connection.execute(
                "SELECT stamp FROM events WHERE namespace = ? AND position > ? ORDER BY position LIMIT 1",
                (namespace, after),
            ).fetchone()
            return None if found is None else int(found[0])

    def pending(self, after: int = 0) -> dict[str, int]:
        """Last position of every namespace that has events after position `after` of the whole log.

        A runner asks for all once, and then only for what follows the last position it has seen.
        """
        with self.database.reading() as connection:
            # From the start the index alone answers; later a walk over the few new rows is shorter.
            source = "events NOT INDEXED" if after else "events"
            found = connection.execute(
                f"SELECT namespace, max(position) FROM {source} WHERE position > ? GROUP BY namespace", (after,)
            )
            return dict(found.fetchall())

    def last_position(self) -> int:
        """Position of the newest event, 0 before the first; trimming does not change it."""
        with self.database.reading() as connection:
            return int(connection.execute("SELECT position FROM head").fetchone()[0])

    def wait(self, after: int, timeout: float) -> int:
        """Block until there is an event after position `after`, or `timeout` seconds; return the last position."""
        deadline = time.monotonic() + timeout
        version = None
        last = after
        while True:
            with self._news:
                if (seen := self.database.version()) != version:
                    version, last = seen, self.last_position()
                remaining = deadline - time.monotonic()
                if last > after or remaining <= 0:
                    return last
                self._news.wait(min(remaining, _POLL_SECONDS))

    def set_marks(self, positions: Mapping[str, int]) -> None:
        """Everything of these namespaces up to their positions is durable elsewhere. A mark never moves back."""
        with self.database.transaction() as connection:
            connection.executemany(
                "INSERT INTO marks VALUES (?, ?) ON CONFLICT DO UPDATE SET position = max(position, excluded.position)",
                positions.items(),
            )

    def marks(self) -> dict[str, int]:
        with self.database.reading() as connection:
            return dict(connection.execute("SELECT namespace, position FROM marks").fetchall())

    def trim(self, retention: float = 0.0) -> int:
        """Delete the events at or below their namespace's mark and older than `retention` seconds; return how many."""
        before = self.clock() - round(retention * 1e6)
        marked = [(namespace, position, before) for namespace, position in self.marks().items()]
        with self.database.transaction() as connection:
            deleted = connection.executemany(
                "DELETE FROM events WHERE namespace = ? AND position <= ? AND stamp <= ?", marked
            )
            return max(deleted.rowcount, 0)

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _commit_waiting(self) -> None:
        group = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            with self.database.transaction() as connection:
                positions = self.insert(connection, (row for call in group for row in call.rows))
        except BaseException as error:
            # Whatever stopped this thread, the others of its group must learn that nothing was stored.
            for call in group:
                call.error = error if isinstance(error, Exception) else StoreError("the commit was interrupted")
            if not isinstance(error, Exception):
                raise
            return
        start = 0
        for call in group:
            call.positions = positions[start : start + len(call.rows)]
            start += len(call.rows)
        self.announce()

    def _decode(self, position: int, stamp: int, payload: bytes) -> Accepted:
        try:
            event = DocumentEvent.model_validate_json(payload)
        except ValidationError as error:
            raise StoreError(
                f"event {position} of {self.database.path} cannot be read ({error.error_count()} errors)",
                hint="It was written by a newer gistream, or the file was changed: upgrade, or move the file away",
            ) from None
        if event.version is None:
            event = event.model_copy(update={"version": stamp})
        return Accepted(position, stamp, event, {SOURCE: position})
