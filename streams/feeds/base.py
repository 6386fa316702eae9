"""What a feed is: something read once, that yields events and the items it had to refuse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from index.types import DocumentEvent

MAX_PAYLOAD: Final = 2**16
"""Bytes kept of an item too large or too strange to be an event: enough to recognise it."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """An item that is no valid event; it belongs into the dead letters, and the feed goes on behind it."""

    source: str
    """The name of the feed."""
    place: str
    """Where in the source: a line, or a path within the folder."""
    reason: str
    """One line: what is wrong and what to do; names document and field where they are known."""
    payload: bytes
    """The item as it was read, so that it can be repaired and replayed; its head where it is larger than the limits."""


class Feed(Protocol):
    """A source of documents. Fit for use by one thread."""

    @property
    def name(self) -> str:
        """What the source is called in dead letters and messages."""
        ...

    def read(self) -> Iterator[DocumentEvent | Rejected]:
        """Every item once, in an order that only the source decides; blocks while the source has nothing yet.

        A flawed item is yielded as Rejected and never stops the feed. Holds one item in memory at a time.
        Raises NotFound when the source itself is missing.
        """
        ...
