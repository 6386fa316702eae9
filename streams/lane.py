"""One namespace under way: its writer, how far it has got, and the upkeep that is due between its commits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from index import maintenance
from index.maintenance import Retention
from index.metrics import Metrics
from index.types import Accepted

from .apply import Applied
from .log import SOURCE
from .pipeline import Opened
from .position import NOTHING


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Events whose turn has not come, and whose passages are being read already."""

    batch: Sequence[Accepted]
    passages: int


@dataclass(slots=True)
class Lane:
    """What a runner keeps about a namespace that it has open for writing."""

    opened: Opened
    metrics: Metrics
    source: str = SOURCE
    """What its events come from, as positions name it."""
    durable: int = NOTHING
    """Position up to which its commits are on the disk."""
    foreseen: list[Foreseen] = field(default_factory=list)
    """In the order of the log; see ahead.py."""
    used: float = field(default_factory=time.monotonic)
    """When it was last asked for, on the monotonic clock."""
    _commits: int = field(init=False)
    """Since the last compaction, like `_passages`."""
    _passages: int = 0

    def __post_init__(self) -> None:
        # What former writers left counts too: a namespace that is opened for a single commit each time is compacted as
        # one that stays open.
        self._commits = maintenance.uncompacted(self.opened.writer)

    @property
    def position(self) -> int:
        """Position of the source up to which events are committed."""
        return self.opened.writer.manifest.positions.get(self.source, NOTHING)

    def grew(self, applied: Applied) -> None:
        """Note a batch, which brings the next compaction closer."""
        self._commits += 1
        self._passages += applied.extracted

    def checkpoint(self) -> None:
        """Bring every commit so far onto the disk."""
        self.durable = self.opened.writer.checkpoint().get(self.source, NOTHING)

    def tidy(self, exact_max: int) -> None:
        """Merge, compact and index where enough small pieces have come together; see maintenance.index."""
        started = time.perf_counter()
        while maintenance.merge(self.opened.writer):
            self.metrics.observe("gistream_maintenance_seconds", time.perf_counter() - started, task="merge")
            started = time.perf_counter()
        if self._commits >= maintenance.COMPACT_AFTER or self._passages >= maintenance.COMPACT_AFTER_PASSAGES:
            with self.metrics.timed("gistream_maintenance_seconds", task="compact"):
                maintenance.compact(self.opened.writer)
            with self.metrics.timed("gistream_maintenance_seconds", task="index"):
                done = maintenance.index(self.opened.writer, exact_max)
            for index, upkeep in done.items():
                if upkeep.rows:
                    self.metrics.count("gistream_rows_indexed_total", upkeep.rows, index=index, step=upkeep.step)
            self._commits = self._passages = 0

    def clean(self, retention: Retention, least: int) -> None:
        """Remove snapshots beyond the retention, where there are `least`, and what only they need."""
        with self.metrics.timed("gistream_maintenance_seconds", task="clean"):
            maintenance.clean(self.opened.writer, retention, least=least)
