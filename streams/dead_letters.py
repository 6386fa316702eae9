"""The dead letters: what could not be decoded or indexed, with the reason, kept until someone repairs or removes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from index.token import Token
from index.types import DocumentEvent

from .letter import DeadLetter, no_letter
from .log import SOURCE, Log, stored

_COLUMNS = ("number", "at", "source", "position", "namespace", "id", "step", "reason", "attempts", "payload")
_READ = ", ".join([*_COLUMNS, "replayed"])


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

    def put(self, letter: DeadLetter) -> int:
        """Keep a letter durably and return its number."""
        held = (letter.source, letter.position, letter.namespace, letter.id, letter.step, letter.reason)
        values = (self._log.clock(), *held, letter.attempts, letter.payload)
        with self._database.transaction() as connection:
            marks = ", ".join("?" * len(values))
            number = connection.execute(f"INSERT INTO dead_letters VALUES (NULL, {marks}, NULL)", values).lastrowid
        assert number is not None
        return number

    def waiting(self, *, limit: int = 100, after: int = 0) -> list[DeadLetter]:
        """Letters that wait, oldest first, at most `limit` with a number above `after`."""
        with self._database.reading() as connection:
            found = connection.execute(
                f"SELECT {_READ} FROM dead_letters WHERE replayed IS NULL AND number > ? ORDER BY number LIMIT ?",
                (after, limit),
            )
            return [_letter(row) for row in found.fetchall()]

    def show(self, number: int) -> DeadLetter:
        """One letter, waiting or replayed. Raises NotFound."""
        with self._database.reading() as connection:
            row = connection.execute(f"SELECT {_READ} FROM dead_letters WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise no_letter(number)
        return _letter(row)

    def count(self) -> int:
        """How many letters wait."""
        with self._database.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM dead_letters WHERE replayed IS NULL").fetchone()[0])

    def remove(self, number: int) -> None:
        """Forget a letter and its payload. Raises NotFound."""
        with self._database.transaction() as connection:
            if not connection.execute("DELETE FROM dead_letters WHERE number = ?", (number,)).rowcount:
                raise no_letter(number)

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
                raise no_letter(number)
        self._log.announce()
        return str(Token(SOURCE, position))

    def erase(self, namespace: str) -> int:
        """Forget every letter of a namespace, replayed ones too; return how many they were."""
        with self._database.transaction() as connection:
            return connection.execute("DELETE FROM dead_letters WHERE namespace = ?", (namespace,)).rowcount


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    *held, replayed = row
    letter = DeadLetter(**dict(zip(_COLUMNS, held, strict=True)))
    return replace(letter, replayed=None if replayed is None else str(Token(SOURCE, replayed)))
