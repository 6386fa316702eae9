"""What was fetched of a topic's partitions and is not finished: the part of the stream that a worker works on."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from index.types import Accepted

from .position import NOTHING

MOST_EVENTS: Final = 4096
MOST_BYTES: Final = 16 * 2**20
"""Of one partition, with what is finished behind an entry that is not; beyond, no more of it is fetched until half of
that is left. One large record may go beyond.
"""


@dataclass(slots=True, eq=False)
class Entry:
    """One record on its way."""

    partition: int
    offset: int
    size: int
    """Bytes of its value."""
    accepted: Accepted | None
    """None: it went to the dead letters, and nothing is left to do."""
    handle: Any = None
    """What acknowledges it to Kafka."""
    is_done: bool = False
    is_given_up: bool = False
    """Its event cannot be understood ahead, and is for the applier as it is."""

    @property
    def namespace(self) -> str | None:
        """Of its event; None where it has none."""
        return None if self.accepted is None else self.accepted.event.namespace


class Window:
    """Entries by namespace, in the order in which they came, and by partition, in which they are acknowledged.

    A namespace may get ahead of others in its partition, so entries are finished in any order; what is told of a
    partition is only how far it is finished without a gap. Safe for threads.
    """

    def __init__(self, most_events: int = MOST_EVENTS, most_bytes: int = MOST_BYTES) -> None:
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._news = threading.Condition()
        self._is_news = False
        """Whether a wait has to end."""
        self._waiting: defaultdict[str, deque[Entry]] = defaultdict(deque)
        self._fresh: set[str] = set()
        self._order: defaultdict[int, deque[Entry]] = defaultdict(deque)
        self._bytes: defaultdict[int, int] = defaultdict(int)
        self._settling: defaultdict[int, deque[tuple[int, str | None]]] = defaultdict(deque)
        """Offset and namespace of what is finished and acknowledged, and perhaps not durable yet."""
        self._last: defaultdict[int, int] = defaultdict(lambda: NOTHING)

    def offer(self, entry: Entry) -> None:
        """Take one more; a record that came before is passed over."""
        with self._news:
            if entry.offset <= self._last[entry.partition]:
                return
            self._last[entry.partition] = entry.offset
            self._order[entry.partition].append(entry)
            self._bytes[entry.partition] += entry.size
            if (name := entry.namespace) is None:
                entry.is_done = True
            else:
                self._waiting[name].append(entry)
                self._fresh.add(name)
            self._tell()

    def news(self) -> dict[str, int]:
        """Namespaces that got entries since this was last asked, each with its last offset."""
        with self._news:
            fresh, self._fresh = self._fresh, set()
            return {name: self._waiting[name][-1].offset for name in fresh if self._waiting.get(name)}

    def names(self) -> list[str]:
        """Namespaces with entries waiting, in the order in which they came to wait."""
        with self._news:
            return list(self._waiting)

    def peek(self, name: str, start: int, most: int) -> list[Entry]:
        """Waiting entries of a namespace from the one with index `start` on, at most so many."""
        with self._news:
            waiting = self._waiting.get(name, ())
            return [waiting[at] for at in range(start, min(start + most, len(waiting)))]

    def finish(self, name: str, count: int) -> None:
        """The first `count` waiting entries of a namespace are done."""
        with self._news:
            for _ in range(count):
                self._finish_first(name)

    def finish_up_to(self, name: str, offset: int) -> None:
        """The waiting entries of a namespace up to this offset are done."""
        with self._news:
            while name in self._waiting and self._waiting[name][0].offset <= offset:
                self._finish_first(name)

    def take_done(self) -> dict[int, list[Entry]]:
        """By partition the entries up to the first unfinished one, once each: they may be acknowledged."""
        found: dict[int, list[Entry]] = {}
        with self._news:
            for partition, order in self._order.items():
                done = []
                while order and order[0].is_done:
                    done.append(order.popleft())
                if done:
                    found[partition] = done
                    # Until here each is held whole, wherever its namespace has got to.
                    self._bytes[partition] -= sum(entry.size for entry in done)
                    self._settling[partition].extend((entry.offset, entry.namespace) for entry in done)
        return found

    def settled(self, durable: Mapping[str, int] | None = None) -> dict[int, int]:
        """By partition the offset up to which everything is finished and durable, where that moved on.

        `durable`: by namespace the offset up to which it is on the disk; without, all that is finished is.
        """
        found: dict[int, int] = {}
        with self._news:
            for partition, settling in self._settling.items():
                while settling and _is_durable(*settling[0], durable):
                    found[partition], _ = settling.popleft()
        return found

    def full(self) -> set[int]:
        """Partitions of which no more should be fetched now."""
        with self._news:
            return {partition for partition in self._order if self._fill(partition) >= 1.0}

    def roomy(self) -> set[int]:
        """Partitions of which more may be fetched again."""
        with self._news:
            return {partition for partition in self._order if self._fill(partition) <= 0.5}

    def last(self, partition: int) -> int:
        """The last offset that came of a partition; NOTHING before the first."""
        with self._news:
            return self._last[partition]

    def __len__(self) -> int:
        """Entries that are not finished, or finished behind one that is not."""
        with self._news:
            return sum(map(len, self._order.values()))

    def wait(self, timeout: float) -> None:
        """Block until something came, or somebody called `wake`, since the last wait; or for `timeout` seconds."""
        with self._news:
            self._news.wait_for(lambda: self._is_news, timeout)
            self._is_news = False

    def wake(self) -> None:
        """End the wait, this one or the next."""
        with self._news:
            self._tell()

    def _tell(self) -> None:
        self._is_news = True
        self._news.notify_all()

    def _finish_first(self, name: str) -> None:
        waiting = self._waiting[name]
        waiting.popleft().is_done = True
        if not waiting:
            del self._waiting[name]

    def _fill(self, partition: int) -> float:
        return max(len(self._order[partition]) / self._most_events, self._bytes[partition] / self._most_bytes)


def _is_durable(offset: int, namespace: str | None, durable: Mapping[str, int] | None) -> bool:
    return namespace is None or durable is None or durable.get(namespace, NOTHING) >= offset
