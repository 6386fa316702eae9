"""The book of feeds: which ones were added, what each remembers of its source, and how each has fared."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

from index.errors import BadRequest, FeedEnded, NotFound

from ..database import Database
from .base import Memory, Step

Kind = Literal["folder", "jsonl", "rss", "kafka"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

NAME_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS feeds (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, kind TEXT,"
    " source TEXT, namespace TEXT, options TEXT, removed INTEGER DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS cursors (feed INTEGER PRIMARY KEY, cursor TEXT)",
    "CREATE TABLE IF NOT EXISTS items (feed INTEGER, id TEXT, state TEXT, PRIMARY KEY (feed, id)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS progress (feed INTEGER PRIMARY KEY, events INTEGER DEFAULT 0,"
    " rejected INTEGER DEFAULT 0, succeeded_at INTEGER, failed_at INTEGER, error TEXT, skipped TEXT DEFAULT '{}')",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One feed as it was added."""

    name: str
    kind: Kind
    source: str
    """A path, an address, or a topic."""
    namespace: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """What its kind takes besides (kinds.py)."""
    number: int = 0
    """Tells it from a feed of the same name that was removed; 0 before it is in the book."""
    removed: bool = False
    """Whether somebody is removing it: nothing of it is delivered any more."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How a feed has fared since it was added."""

    events: int = 0
    rejected: int = 0
    documents: int = 0
    """Documents of the source that it keeps track of."""
    succeeded_at: int | None = None
    """Microseconds since 1970 when the source was last read to its end."""
    failed_at: int | None = None
    """When that last failed; None once it succeeded after that."""
    error: str | None = None
    """Why it failed then."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many items of the source are of no kind that is read, by kind."""


class Book:
    """One SQLite file of its own: a feed needs nothing of the log but its Inbox. Safe for threads and processes."""

    def __init__(self, path: Path, *, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        """Open or make it. `clock` gives microseconds since 1970. Raises StoreError (see Database)."""
        self.database = Database(path, _SCHEMA)
        self._clock = clock

    def add(self, entry: Entry) -> Entry:
        """Write a feed into the book. Raises BadRequest where its name is taken or no name."""
        if not NAME_PATTERN.fullmatch(entry.name):
            hint = "a feed's name is 1 to 63 of a-z 0-9 . _ - and starts with a letter or digit"
            raise BadRequest(f"{entry.name!r} is no name of a feed", hint=hint)
        values = (entry.name, entry.kind, entry.source, entry.namespace, json.dumps(entry.options, sort_keys=True))
        with self.database.transaction() as connection:
            taken = connection.execute("SELECT 1 FROM feeds WHERE name = ?", (entry.name,)).fetchone()
            if taken:
                hint = "choose another with --name, or remove that feed first"
                raise BadRequest(f"there is a feed {entry.name} already", hint=hint)
            connection.execute(
                "INSERT INTO feeds (name, kind, source, namespace, options) VALUES (?, ?, ?, ?, ?)", values
            )
        return self.get(entry.name)

    def entries(self) -> list[Entry]:
        """All feeds, by name."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT name, kind, source, namespace, options, number, removed FROM feeds ORDER BY name"
            ).fetchall()
        return [
            Entry(name, kind, source, namespace, json.loads(options), number, bool(removed))
            for name, kind, source, namespace, options, number, removed in rows
        ]

    def get(self, name: str) -> Entry:
        """One feed. Raises NotFound."""
        for entry in self.entries():
            if entry.name == name:
                return entry
        raise NotFound(f"there is no feed {name}", hint="`gistream feed list` shows all of them")

    def begin_removal(self, entry: Entry) -> None:
        """From now on nothing is kept of this feed, and so nothing new of it delivered."""
        with self.database.transaction() as connection:
            connection.execute("UPDATE feeds SET removed = 1 WHERE number = ?", (entry.number,))

    def remove(self, entry: Entry) -> None:
        """Forget a feed and all that it remembers."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM feeds WHERE number = ?", (entry.number,))
            for table in ("cursors", "items", "progress"):
                connection.execute(f"DELETE FROM {table} WHERE feed = ?", (entry.number,))

    def memory(self, entry: Entry) -> Memory:
        """All that the feed remembers."""
        with self.database.reading() as connection:
            found = connection.execute("SELECT cursor FROM cursors WHERE feed = ?", (entry.number,)).fetchone()
            items = dict(connection.execute("SELECT id, state FROM items WHERE feed = ?", (entry.number,)).fetchall())
        return Memory(found[0] if found else "", items)

    def keep(self, entry: Entry, steps: Sequence[Step]) -> None:
        """Remember durably what `steps` say, all of it or nothing. Raises FeedEnded where the feed is being removed."""
        learnt: dict[str, str | None] = {}
        cursor = None
        for step in steps:
            learnt |= step.items
            cursor = step.cursor if step.cursor is not None else cursor
        with self.database.transaction() as connection:
            self._check_present(connection, entry)
            connection.executemany(
                "INSERT INTO items VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state",
                [(entry.number, id, state) for id, state in learnt.items() if state is not None],
            )
            connection.executemany(
                "DELETE FROM items WHERE feed = ? AND id = ?",
                [(entry.number, id) for id, state in learnt.items() if state is None],
            )
            if cursor is not None:
                connection.execute(
                    "INSERT INTO cursors VALUES (?, ?) ON CONFLICT DO UPDATE SET cursor = excluded.cursor",
                    (entry.number, cursor),
                )

    def note(
        self, entry: Entry, *, events: int, rejected: int, skipped: Mapping[str, int], error: str | None = None
    ) -> None:
        """Add what one look at the source brought, and how it ended."""
        now = self._clock()
        with self.database.transaction() as connection:
            self._check_present(connection, entry)
            connection.execute("INSERT OR IGNORE INTO progress (feed) VALUES (?)", (entry.number,))
            connection.execute(
                "UPDATE progress SET events = events + ?, rejected = rejected + ?, skipped = ?,"
                " succeeded_at = ifnull(?, succeeded_at), failed_at = ?, error = ? WHERE feed = ?",
                (
                    events,
                    rejected,
                    json.dumps(dict(skipped), sort_keys=True),
                    None if error else now,
                    now if error else None,
                    error,
                    entry.number,
                ),
            )

    def progress(self, entry: Entry) -> Progress:
        """How the feed has fared so far."""
        with self.database.reading() as connection:
            found = connection.execute(
                "SELECT events, rejected, succeeded_at, failed_at, error, skipped FROM progress WHERE feed = ?",
                (entry.number,),
            ).fetchone()
            documents = connection.execute("SELECT count(*) FROM items WHERE feed = ?", (entry.number,)).fetchone()[0]
        if found is None:
            return Progress(documents=documents)
        events, rejected, succeeded, failed, error, skipped = found
        return Progress(events, rejected, documents, succeeded, failed, error, json.loads(skipped))

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_present(self, connection: sqlite3.Connection, entry: Entry) -> None:
        row = connection.execute("SELECT 1 FROM feeds WHERE number = ? AND NOT removed", (entry.number,)).fetchone()
        if row is None:
            raise FeedEnded(f"the feed {entry.name} was removed")
