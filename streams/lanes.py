"""The namespaces a runner holds open for writing: opened when they get events, bounded in number, let go when quiet."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from index.home import Home
from index.maintenance import Retention
from index.metrics import Metrics
from index.writer import Synced, Writer

from .lane import Lane
from .pipeline import Pipeline, open_namespace

WORTH_CLEANING = 64
"""Snapshots that are cleaned up together before their minute is over; many at once would hold up the next commit."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Left:
    """What is remembered of a namespace that was let go, so that opening it again costs less."""

    folder: str
    synced: Synced
    snapshots: int
    """Manifests that its last cleaning left."""


class Lanes:
    """Opens namespaces on demand and lets the least recently used go; one thread uses it.

    A namespace that is let go is cleaned where that is worth it, durable, and its lock released: nothing of it stays
    open. A namespace that cannot be made durable is let go as well, and the log keeps its events.
    """

    def __init__(
        self,
        home: Home,
        pipeline: Pipeline,
        metrics: Metrics,
        *,
        capacity: int,
        retention: Retention,
        take_over: bool,
        source: Callable[[str], str],
    ) -> None:
        """`source` names what the events of a namespace come from."""
        self._home = home
        self._pipeline = pipeline
        self._metrics = metrics
        self._capacity = capacity
        self._retention = retention
        self._take_over = take_over
        self._source = source
        self._held: dict[str, Lane] = {}
        """The least recently used first."""
        self._left: dict[str, _Left] = {}
        self._durable: dict[str, int] = {}
        """Positions that became durable since `checkpoint` last told."""

    def get(self, name: str) -> Lane | None:
        """The lane of a namespace that is open."""
        return self._held.get(name)

    def names(self) -> list[str]:
        """Every namespace that is open, the least recently used first."""
        return list(self._held)

    def writers(self) -> list[Writer]:
        """Writers of the namespaces that are open. Any thread may ask."""
        return [lane.opened.writer for lane in list(self._held.values())]

    def open(self, name: str) -> Lane:
        """The lane of a namespace, opened where it is not, or not in its living incarnation.

        Raises what open_namespace raises.
        """
        pointer, lane = self._home.pointer(name), self._held.get(name)
        living = None if pointer is None or pointer.deleted else pointer.incarnation
        if lane is not None and lane.opened.writer.folder.name != living:
            # Deleted or made anew meanwhile.
            self.leave(name)
            lane = None
        if lane is None:
            while len(self._held) >= self._capacity:
                self.let_go(next(iter(self._held)))
            left = self._left.get(name)
            synced = left.synced if left is not None and left.folder == living else None
            opened = open_namespace(self._home, name, self._pipeline, take_over=self._take_over, synced=synced)
            lane = Lane(opened, self._metrics, self._source(name))
            self._metrics.count("gistream_namespaces_opened_total", role="writer")
        else:
            if self._take_over:
                # A rebuild could begin beside a writer without a lock, and would miss what it writes.
                lane.opened.writer.hold()
            del self._held[name]
        self._held[name] = lane
        lane.used = time.monotonic()
        return lane

    def clean(self, name: str, *, thorough: bool) -> None:
        """Remove what no snapshot within the retention needs: where there is much of it, or all when `thorough`."""
        if thorough:
            self._home.sweep(name)
        self._held[name].clean(self._retention, least=1 if thorough else WORTH_CLEANING)

    def leave(self, name: str) -> None:
        """Release a namespace as it is: something is wrong with it, and whoever opens it next looks at its files."""
        self._held.pop(name).opened.release()
        self._left.pop(name, None)

    def let_go(self, name: str) -> None:
        """Finish with a namespace that is well, and release it."""
        lane = self._held.pop(name)
        writer = lane.opened.writer
        former = self._left.pop(name, None)
        cleaned = former.snapshots if former is not None and former.folder == writer.folder.name else 0
        try:
            # Cleaning reads every manifest of a namespace that was opened anew: only where many have come since.
            if (snapshots := len(writer.manifests.numbers())) - cleaned >= WORTH_CLEANING:
                lane.clean(self._retention, least=1)
                cleaned = len(writer.manifests.numbers())
            self._home.sweep(name)
            # Answers that are still to come are paid for.
            lane.opened.understood.close()
            self._made_durable(name, lane)
            self._left[name] = _Left(writer.folder.name, writer.synced, min(cleaned, snapshots))
        except Exception as error:
            _log.warning("namespace %s was closed before it was durable, the log keeps its events: %s", name, error)
        finally:
            lane.opened.release()
            self._metrics.count("gistream_namespaces_evicted_total", role="writer")

    def let_go_quiet(self, seconds: float) -> None:
        """Let go of the namespaces that nothing came for since so many seconds."""
        before = time.monotonic() - seconds
        for name in [name for name, lane in self._held.items() if lane.used <= before]:
            self.let_go(name)

    def checkpoint(self) -> Mapping[str, int]:
        """Make every commit durable; returns the positions that became so since the last call, by namespace."""
        if any(lane.position > lane.durable for lane in self._held.values()):
            with self._metrics.timed("gistream_checkpoint_seconds"):
                for name, lane in self._held.items():
                    self._made_durable(name, lane)
        durable, self._durable = self._durable, {}
        return durable

    def close(self) -> None:
        """Finish with everything that is open."""
        with ExitStack() as stack:
            for lane in self._held.values():
                stack.callback(lane.opened.close)
            self._held.clear()

    def _made_durable(self, name: str, lane: Lane) -> None:
        if lane.position > lane.durable:
            lane.checkpoint()
            self._durable[name] = lane.durable
