"""From a feed into the log: what it yields is appended in batches, and what it refused goes to the dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Thread
from typing import BinaryIO, Final

from index.types import DocumentEvent
from streams.dead_letters import DeadLetters
from streams.feeds.base import Feed, Rejected
from streams.log import Log

from .indexing import Awaited

BATCH: Final = 64
"""Items at once: they share one fsync, and at most twice so many documents are in memory."""

IDLE_SECONDS: Final = 0.2
"""How long a feed may be silent before its reader is given an empty batch, to look after other things."""

Item = DocumentEvent | Rejected


def standard_input() -> BinaryIO:
    """Standard input under a reader of its own: while a thread waits in that of sys.stdin, Python cannot end."""
    return open(0, "rb", closefd=False)


class Intake:
    """One feed on its way into the log, with the counts of what came."""

    def __init__(self, feed: Feed, log: Log, letters: DeadLetters, namespace: str, awaited: Awaited) -> None:
        self._feed = feed
        self._log = log
        self._letters = letters
        self._namespace = namespace
        self._awaited = awaited
        self.events = 0
        self.rejected = 0

    def __iter__(self) -> Iterator[None]:
        """Read the feed to its end; comes back after every batch, and at least every IDLE_SECONDS.

        Everything read before is durable by then. Raises what the feed and the log raise.
        """
        for batch in _batches(self._feed):
            events = [item for item in batch if isinstance(item, DocumentEvent)]
            self._awaited.add(events, self._log.append(events))
            refused = [item for item in batch if isinstance(item, Rejected)]
            for item in refused:
                # A line without a namespace of its own meant this one, and must find it again when it is replayed.
                source = f"{item.source}, {item.place}"
                self._letters.put(source, "decode", item.reason, item.payload, namespace=self._namespace)
            self.events += len(events)
            self.rejected += len(refused)
            yield


@dataclass(frozen=True, slots=True)
class _End:
    """Stands behind the last item of a feed; `error` is what ended it early."""

    error: Exception | None = None


def _batches(feed: Feed) -> Iterator[list[Item]]:
    """The items of a feed, as many at once as have come: a quick feed shares fsyncs, a slow one is not held back."""
    items: Queue[Item | _End] = Queue(BATCH)

    def read() -> None:
        try:
            for item in feed.read():
                items.put(item)
        except Exception as error:
            items.put(_End(error))
        else:
            items.put(_End())

    # A pipe that nobody writes to cannot be woken, so the thread must not hold up the end of the process.
    Thread(target=read, name="gistream-feed", daemon=True).start()
    end: _End | None = None
    while end is None:
        batch, end = _come(items)
        yield batch
    if end.error is not None:
        raise end.error


def _come(items: Queue[Item | _End]) -> tuple[list[Item], _End | None]:
    """What has come by now, at most BATCH items; waits up to IDLE_SECONDS for the first."""
    batch: list[Item] = []
    try:
        while len(batch) < BATCH:
            item = items.get(block=not batch, timeout=IDLE_SECONDS)
            if isinstance(item, _End):
                return batch, item
            batch.append(item)
    except Empty:
        pass
    return batch, None
