"""What a feed is: a source that is looked at again and again, and says what is new since it was last understood.

A feed keeps nothing that matters. What it has to know next time it hands out with the events themselves, in one `Step`;
whoever carries the steps (deliver.py) stores that knowledge only when the inbox has acknowledged the events. So a feed
that is killed anywhere says some events again and loses none, and since a document keeps its id, to hear an event twice
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
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
    """Where in the source: a line, an entry, or a path within the folder."""
    reason: str
    """One line: what is wrong and what to do; names document and field where they are known."""
    payload: bytes
    """The item as it was read, so that it can be repaired and replayed; its head where it is larger than the limits."""


@dataclass(frozen=True, slots=True)
class Step:
    """What belongs together: events that are appended at once, and what to know once they are acknowledged."""

    events: tuple[DocumentEvent, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    items: Mapping[str, str | None] = field(default_factory=dict)
    """By document id what to remember of it; None forgets it."""
    cursor: str | None = None
    """Where the source stands now; None leaves the cursor as it is."""


@dataclass(slots=True)
class Memory:
    """All that a feed knows of its source, as it said itself in the steps that were acknowledged; begins empty."""

    cursor: str = ""
    items: dict[str, str] = field(default_factory=dict)
    """By document id. An empty text: the document may have been sent, and what of it is unknown."""

    def learn(self, step: Step) -> None:
        """Take over what a step says."""
        for id, state in step.items.items():
            if state is None:
                self.items.pop(id, None)
            else:
                self.items[id] = state
        if step.cursor is not None:
            self.cursor = step.cursor


class Feed(Protocol):
    """A source of documents. Fit for use by one thread."""

    @property
    def name(self) -> str:
        """What the source is called in dead letters and messages."""
        ...

    @property
    def skipped(self) -> Mapping[str, int]:
        """How many items the last poll passed over because this feed reads none of their kind, by kind."""
        ...

    def poll(self, memory: Memory) -> Iterator[Step]:
        """What is new in the source as against `memory`, in an order that only the source decides.

        `memory` learns each step some time after it was yielded; a feed only reads it. Blocks where the source is a
        pipe that has nothing yet. A flawed item is yielded as Rejected and never stops the feed. Holds one item in
        memory at a time. Raises NotFound when the source itself is missing, FeedError when it cannot be read now.
        """
        ...

    def wait(self, stop: Event) -> None:
        """Block until another poll is worth while, or `stop` is set."""
        ...
