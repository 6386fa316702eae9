"""The steps of a feed on their way into the inbox: events first, then what was refused, then what to remember."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from index.types import DocumentEvent, Inbox

from ..letter import DeadLetter, Letters
from .base import Memory, Step

BATCH: Final = 64
"""Steps at once: they share one fsync."""
BATCH_CHARACTERS: Final = 4 * 2**20
"""Of text at once, so that a few large documents do not fill the memory."""


class Delivered(NamedTuple):
    """What one batch brought: its events with their tokens, and how many items were refused."""

    events: Sequence[DocumentEvent]
    tokens: Sequence[str]
    rejected: int


class Delivery:
    """Carries the steps of one feed; `keep` stores durably what they say for next time.

    Each item is delivered at least once, and in the end as if once: a document keeps its id.
    """

    def __init__(
        self,
        inbox: Inbox,
        letters: Letters,
        namespace: str,
        memory: Memory,
        keep: Callable[[Sequence[Step]], None] = lambda steps: None,
    ) -> None:
        self._inbox = inbox
        self._letters = letters
        self._namespace = namespace
        self._memory = memory
        self._keep = keep

    def deliver(self, steps: Sequence[Step]) -> Delivered:
        """Returns when everything is durable. Raises what the inbox, the letters and `keep` raise; nothing is
        remembered then, so the next poll yields the same again.
        """
        events = [event for step in steps for event in step.events]
        if intended := self._unknown(steps):
            # Killed after the append, the feed would not know a document that may vanish from its source meanwhile,
            # and nobody would ever delete it.
            self._learn([intended])
        tokens = self._inbox.append(events) if events else []
        rejected = [item for step in steps for item in step.rejected]
        for item in rejected:
            # A line without a namespace of its own meant this one, and must find it again when it is replayed.
            source = f"{item.source}, {item.place}"
            letter = DeadLetter(source, "decode", item.reason, item.payload, namespace=self._namespace)
            self._letters.put(letter)
        self._learn(steps)
        return Delivered(events, tokens, len(rejected))

    def _unknown(self, steps: Sequence[Step]) -> Step | None:
        """The documents that come for the first time, as documents that may have been sent."""
        upserted = {event.id for step in steps for event in step.events if event.op == "upsert"}
        kept = {id for step in steps for id, state in step.items.items() if state is not None}
        new = (upserted & kept) - self._memory.items.keys()
        return Step(items=dict.fromkeys(sorted(new), "")) if new else None

    def _learn(self, steps: Sequence[Step]) -> None:
        if any(step.items or step.cursor is not None for step in steps):
            self._keep(steps)
            for step in steps:
                self._memory.learn(step)


def batches(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """The steps, as many at once as may share an append. What came before an error is yielded before it is raised."""
    batch: list[Step] = []
    characters = 0
    try:
        for step in steps:
            batch.append(step)
            characters += sum(len(event.text) for event in step.events)
            if len(batch) >= BATCH or characters >= BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
