"""What an applier takes its events from: the local log, or what was fetched of a topic's partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from index.errors import Torn
from index.home import Home
from index.types import Accepted

from .log import SOURCE, Log
from .position import NOTHING, reached


class Backlog(Protocol):
    """Accepted events that wait, in order for each namespace. One thread applies them."""

    def clock(self) -> int:
        """Microseconds since 1970, by the clock that stamped the events."""
        ...

    def source(self, namespace: str) -> str:
        """What the namespace's events come from, as positions name it."""
        ...

    def owns(self, namespace: str) -> bool:
        """Whether the namespace is this applier's to write."""
        ...

    def position(self, namespace: str) -> int:
        """How far a namespace has got that is not open; NOTHING where opening it has to tell."""
        ...

    def news(self) -> Mapping[str, int]:
        """Namespaces that got events since this was last asked, each with its last position."""
        ...

    def read(self, namespace: str, after: int, limit_events: int, limit_bytes: int) -> list[Accepted]:
        """The namespace's next events after a position; at least one if there is one, of whatever size."""
        ...

    def reached(self, namespace: str, position: int) -> None:
        """Everything of a namespace up to this position is in a snapshot."""
        ...

    def durable(self, positions: Mapping[str, int]) -> None:
        """Everything of these namespaces up to their positions is on the disk, and will not be asked for again."""
        ...

    def wait(self, timeout: float) -> None:
        """Block until there is news, or `timeout` seconds."""
        ...


class LogBacklog:
    """The local log of a data folder."""

    def __init__(self, log: Log, home: Home) -> None:
        self._log = log
        self._home = home
        self._seen = 0
        """Position of the log up to which it was looked at."""

    def clock(self) -> int:
        """See Backlog."""
        return self._log.clock()

    def source(self, namespace: str) -> str:
        """See Backlog."""
        return SOURCE

    def owns(self, namespace: str) -> bool:
        """See Backlog."""
        return True

    def position(self, namespace: str) -> int:
        """See Backlog."""
        try:
            return reached(self._home, namespace)
        except Torn:
            # Opening it for writing goes back to what holds, and tells what does not.
            return NOTHING

    def news(self) -> Mapping[str, int]:
        """See Backlog."""
        found = self._log.pending(self._seen)
        self._seen = max([self._seen, *found.values()])
        return found

    def read(self, namespace: str, after: int, limit_events: int, limit_bytes: int) -> list[Accepted]:
        """See Backlog."""
        return self._log.read(namespace, after, limit_events, limit_bytes)

    def reached(self, namespace: str, position: int) -> None:
        """The log keeps what is not durable."""

    def durable(self, positions: Mapping[str, int]) -> None:
        """See Backlog."""
        self._log.set_marks(positions)
        self._log.trim()

    def wait(self, timeout: float) -> None:
        """See Backlog."""
        self._log.wait(self._seen, timeout)
