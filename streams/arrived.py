"""The window of `understood` as a backlog: what an applying worker was assigned, as an applier takes it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from index.errors import StoreError
from index.types import Accepted

from .position import NOTHING
from .register import Incarnation
from .window import Window
from .wire import namespace_partition


class Arrived:
    """A Backlog over a window; all events of a namespace are in one partition, in the order in which they count."""

    def __init__(self, window: Window, topic: Incarnation, partitions: Collection[int]) -> None:
        self._window = window
        self._topic = topic
        self._partitions = frozenset(partitions)
        self._reached: dict[str, int] = {}
        self._left: set[str] = set()
        """Namespaces that were let go before they were durable."""
        self.durable_positions: dict[str, int] = {}
        """By namespace the offset up to which it is on the disk."""

    def clock(self) -> int:
        """The broker stamped the events; its clock is taken for ours."""
        return time.time_ns() // 1000

    def source(self, namespace: str) -> str:
        """See Backlog."""
        return self._topic.source(namespace_partition(namespace, self._topic.partitions))

    def owns(self, namespace: str) -> bool:
        """See Backlog."""
        return namespace_partition(namespace, self._topic.partitions) in self._partitions

    def position(self, namespace: str) -> int:
        """Where a namespace was not asked for yet, it has to be opened: that keeps a former writer of it out, too."""
        return NOTHING if namespace in self._left else self._reached.get(namespace, NOTHING)

    def news(self) -> Mapping[str, int]:
        """See Backlog. What was let go too early is news as well: once it is open again, it is made durable."""
        return {name: self._reached[name] for name in self._left} | self._window.news()

    def read(self, namespace: str, after: int, limit_events: int, limit_bytes: int) -> list[Accepted]:
        """See Backlog. Raises StoreError where the namespace has gone back behind what this worker has committed: what
        it lacks is in no window any more, so the worker has to begin again from its ledgers.
        """
        if after < (reached := self._reached.get(namespace, NOTHING)):
            raise StoreError(
                f"namespace {namespace} was at {self.source(namespace)}:{reached} and is at {after} again",
                hint="its files were damaged or replaced; the worker starts again and reads what is missing",
            )
        found: list[Accepted] = []
        start = 0
        while entries := self._window.peek(namespace, start, limit_events):
            for entry in entries:
                if entry.accepted is None or entry.offset <= after:
                    continue
                limit_bytes -= entry.size
                if found and (limit_bytes < 0 or len(found) >= limit_events):
                    return found
                found.append(entry.accepted)
            start += len(entries)
        return found

    def reached(self, namespace: str, position: int) -> None:
        """See Backlog."""
        self._reached[namespace] = position
        self._left.discard(namespace)
        self._window.finish_up_to(namespace, position)

    def durable(self, positions: Mapping[str, int]) -> None:
        """See Backlog. Told of all that is open, so what it leaves out is open no more."""
        self.durable_positions.update(positions)
        self._left = {
            name for name, position in self._reached.items() if position > self.durable_positions.get(name, NOTHING)
        }

    def wait(self, timeout: float) -> None:
        """See Backlog."""
        self._window.wait(timeout)
