"""From a feed into the inbox at once, for a command that waits: what it yields, and what it refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Thread
from typing import BinaryIO, Final

from index.types import Inbox
from streams.feeds.base import Feed, Memory, Step
from streams.feeds.deliver import BATCH, Delivery
from streams.letter import Letters

from .awaited import Awaited

IDLE_SECONDS: Final = 0.2
"""How long a feed may be silent before its reader is given an empty batch, to look after other things."""


def standard_input() -> BinaryIO:
    """Standard input under a reader of its own: while a thread waits in that of sys.stdin, Python cannot end."""
    return open(0, "rb", closefd=False)


class Intake:
    """One feed on its way into the inbox, as if seen for the first time, with the counts of what came."""

    def __init__(self, feed: Feed, inbox: Inbox, letters: Letters, namespace: str, awaited: Awaited) -> None:
        self._feed = feed
        self._delivery = Delivery(inbox, letters, namespace, Memory())
        self._awaited = awaited
        self.events = 0
        self.rejected = 0

    def __iter__(self) -> Iterator[None]:
        """Read the feed to its end; comes back after every batch, and at least every IDLE_SECONDS.

        Everything read before is durable by then. Raises what the feed and the inbox raise.
        """
        for steps in _batches(self._feed):
            delivered = self._delivery.deliver(steps)
            self._awaited.add(delivered.events, delivered.tokens)
            self.events += len(delivered.events)
            self.rejected += delivered.rejected
            yield


@dataclass(frozen=True, slots=True)
class _End:
    """Stands behind the last step of a feed; `error` is what ended it early."""

    error: Exception | None = None


def _batches(feed: Feed) -> Iterator[list[Step]]:
    """The steps of a feed, as many at once as have come: a quick feed shares fsyncs, a slow one is not held back."""
    steps: Queue[Step | _End] = Queue(BATCH)

    def read() -> None:
        try:
            # A memory of its own, which stays empty: the feed only reads it, and the other one moves meanwhile.
            for step in feed.poll(Memory()):
                steps.put(step)
        except Exception as error:
            steps.put(_End(error))
        else:
            steps.put(_End())

    # A pipe that nobody writes to cannot be woken, so the thread must not hold up the end of the process.
    Thread(target=read, name="gistream-feed", daemon=True).start()
    end: _End | None = None
    while end is None:
        batch, end = _come(steps)
        yield batch
    if end.error is not None:
        raise end.error


def _come(steps: Queue[Step | _End]) -> tuple[list[Step], _End | None]:
    """What has come by now, at most BATCH steps; waits up to IDLE_SECONDS for the first."""
    batch: list[Step] = []
    try:
        while len(batch) < BATCH:
            step = steps.get(block=not batch, timeout=IDLE_SECONDS)
            if isinstance(step, _End):
                return batch, step
            batch.append(step)
    except Empty:
        pass
    return batch, None
