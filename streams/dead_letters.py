"""The dead letters: what could not be decoded or indexed, with the reason, kept until someone repairs or removes it."""

from __future__ import annotations

from dataclasses import dataclass

from index.errors import NotFound
from index.token import Token
from index.types import DocumentEvent

from .log import SOURCE, Log, stored

_COLUMNS = "number, at, source, position, namespace, id, step, reason, attempts, payload, replayed"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One letter; `position`, `namespace` and `id` are None where it died before they were known."""

    number: int
    at: int
    """Microseconds since 1970."""
    source: str
    """Where it came from: a file, a feed, the service, the log."""
    position: int | None
    namespace: str | None
    id: str | None
    step: str
    """The step that failed: decode, chunk, understand, apply."""
    reason: str
    attempts: int
    payload: bytes
    """What arrived, byte for byte."""
    replayed: int | None
    """Position of the event that replaced it; None while the letter waits."""


class DeadLetters:
    """Letters in the file of the log, so that a replay and its event are one transaction."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._database = log.database
        with self._database.transaction() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS dead_letters (number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER,"
                " source TEXT, position INTEGER, namespace TEXT, id TEXT, step TEXT, reason TEXT, attempts INTEGER,"
                " payload BLOB, replayed INTEGER)"
            )

    def put(
        self,
        source: str,
        step: str,
        reason: str,
        payload: bytes,
        *,
        position: int | None = None,
        namespace: str | None = None,
        id: str | None = None,
        attempts: int = 1,
    ) -> int:
        """Keep a letter durably and return its number."""
        with self._database.transaction() as connection:
            values = (self._log.clock(), source, position, namespace, id, step, reason, attempts, payload)
            marks = ", ".join("?" * len(values))
            number = connection.execute(f"INSERT INTO dead_letters VALUES (NULL, {marks}, NULL)", values).lastrowid
        assert number is not None
        return number

    def waiting(self, *, limit: int = 100, after: int = 0) -> list[DeadLetter]:
        """Letters that wait, oldest first, at most `limit` with a number above `after`."""
        with self._database.reading() as connection:
            found = connection.execute(
                f"SELECT {_COLUMNS} FROM dead_letters WHERE replayed IS NULL AND number > ? ORDER BY number LIMIT ?",
                (after, limit),
            )
            return [DeadLetter(*row) for row in found.fetchall()]

    def show(self, number: int) -> DeadLetter:
        """One letter, waiting or replayed. Raises NotFound."""
        with self._database.reading() as connection:
            row = connection.execute(f"SELECT {_COLUMNS} FROM dead_letters WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise _no_letter(number)
        return DeadLetter(*row)

    def count(self) -> int:
        """How many letters wait."""
        with self._database.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM dead_letters WHERE replayed IS NULL").fetchone()[0])

    def remove(self, number: int) -> None:
        """Forget a letter and its payload. Raises NotFound."""
        with self._database.transaction() as connection:
            if not connection.execute("DELETE FROM dead_letters WHERE number = ?", (number,)).rowcount:
                raise _no_letter(number)

    def replay(self, number: int, event: DocumentEvent) -> str:
        """Append `event`, the letter's payload decoded again or repaired, and mark the letter: both or neither.

        Returns the event's token. Raises NotFound when no letter of that number waits.
        """
        with self._database.transaction() as connection:
            [position] = self._log.insert(connection, [stored(event)])
            marked = connection.execute(
                "UPDATE dead_letters SET replayed = ? WHERE number = ? AND replayed IS NULL", (position, number)
            )
            if not marked.rowcount:
                raise _no_letter(number)
        self._log.announce()
        return str(Token(SOURCE, position))

    def erase(self, namespace: str) -> int:
        """Forget every letter of a namespace, replayed ones too; return how many they were."""
        with self._database.transaction() as connection:
            return connection.execute("DELETE FROM dead_letters WHERE namespace = ?", (namespace,)).rowcount


def _no_letter(number: int) -> NotFound:
    return NotFound(f"no dead letter {number} waits", hint="List those that do; it may have been replayed or removed")
