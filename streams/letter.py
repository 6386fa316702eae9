"""What a dead letter is, and the box that keeps them: beside the log, or in a topic of Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from index.errors import NotFound
from index.types import DocumentEvent


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One letter; `position`, `namespace` and `id` are None where it died before they were known."""

    source: str
    """Where it came from: a file, a feed, the service, the log, a partition of a topic."""
    step: str
    """The step that failed: decode, chunk, understand, apply."""
    reason: str
    payload: bytes
    """What arrived, byte for byte; empty for a tombstone, and where a replay has replaced it."""
    position: int | None = None
    """Of its event in `source`."""
    namespace: str | None = None
    id: str | None = None
    attempts: int = 1
    key: bytes | None = None
    """Of a record of Kafka: its key, or the key's head."""
    is_tombstone: bool = False
    """Whether it was a record of Kafka without a value."""
    cut_from: int | None = None
    """Bytes of the whole, where the payload is only its head."""
    number: int = 0
    """Given by the box that keeps it, as is `at`."""
    at: int = 0
    """Microseconds since 1970."""
    replayed: str | None = None
    """Token of the event that replaced it; None while the letter waits."""


class Letters(Protocol):
    """What takes events that cannot be indexed. Safe for threads."""

    def put(self, letter: DeadLetter) -> int:
        """Keep a letter durably, with the moment of now and a number of its own, which is returned."""
        ...


class LetterBox(Letters, Protocol):
    """Keeps letters until someone repairs or drops them."""

    def count(self) -> int:
        """How many letters wait."""
        ...

    def waiting(self, *, limit: int = 100, after: int = 0) -> Sequence[DeadLetter]:
        """Letters that wait, oldest first, at most `limit` with a number above `after`."""
        ...

    def show(self, number: int) -> DeadLetter:
        """One letter, waiting or replayed. Raises NotFound."""
        ...

    def remove(self, number: int) -> None:
        """Forget a letter and its payload. Raises NotFound."""
        ...

    def replay(self, number: int, event: DocumentEvent) -> str:
        """Accept `event`, the letter's payload decoded again or repaired, and mark the letter as replayed.

        Returns the event's token. Raises NotFound when no letter of that number waits.
        """
        ...

    def erase(self, namespace: str) -> int:
        """Forget every letter of a namespace, replayed ones too; return how many they were."""
        ...


def no_letter(number: int) -> NotFound:
    return NotFound(f"no dead letter {number} waits", hint="List those that do; it may have been replayed or removed")
