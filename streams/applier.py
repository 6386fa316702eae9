"""Applying what waits: namespaces take turns, one batch each, whatever log their events come from."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Self, TypedDict

from index.errors import GistreamError, ModelError, WriterFenced
from index.home import Home
from index.limits import EXACT_MAX
from index.maintenance import Retention
from index.metrics import Metrics
from index.types import Accepted, Key
from index.writer import Writer

from .ahead import Ahead
from .apply import Applied
from .backlog import Backlog
from .batch import Batches, OnBatch
from .lane import Lane
from .lanes import Lanes
from .letter import Letters
from .mend import Degraded, mend
from .pipeline import Pipeline, understanding_of
from .renewals import Renewals
from .trouble import Troubles

_log = logging.getLogger(__name__)


def _unheard(namespace: str, applied: Applied) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Pace:
    """How much at once, and how often what comes after a commit is done."""

    batch_events: int = 256
    batch_bytes: int = 4 * 2**20
    checkpoint_seconds: float = 5.0
    clean_seconds: float = 60.0
    """Between two looks for namespaces and files that nobody needs any more."""
    mend_seconds: float = 600.0
    """Between two looks for passages that the extractor could not read, which is when they are read again."""
    retention: Retention = Retention()
    open_namespaces: int = 64
    """Held open at a time; with more of them under way, the least recently used is closed for the next."""
    quiet_seconds: float = 300.0
    """After so long without events a namespace is closed."""
    exact_max: int = EXACT_MAX
    """Rows of a table above which its vectors get an index."""


class Options(TypedDict, total=False):
    """What an applier takes besides."""

    pace: Pace
    on_batch: OnBatch
    metrics: Metrics | None
    renew: bool


class Applier:
    """Carries events from a backlog into their namespaces.

    Namespaces take turns, one batch each, so that a busy one does not starve the others. Use it from one thread: either
    call `step`, or `start` its own. A batch is committed before its position moves, so one that was killed goes on
    where the manifests say.
    """

    def __init__(
        self,
        home: Home,
        backlog: Backlog,
        letters: Letters,
        pipeline: Pipeline,
        *,
        pace: Pace = Pace(),
        take_over: bool = False,
        on_batch: OnBatch = _unheard,
        metrics: Metrics | None = None,
        renew: bool = False,
        mending: Pipeline | None = None,
    ) -> None:
        """`on_batch` is told of every batch that was committed, for progress; what is measured goes to `metrics`. With
        `renew` namespaces that another pipeline made are made anew; without, their events wait. `mending` reads again
        what `pipeline` could not read well; unset, that is `pipeline` itself.
        """
        self.home = home
        self.error: Exception | None = None
        """What stopped the applier's own thread; None while it is well."""
        self.troubles = Troubles()
        """What keeps single namespaces from being indexed; they are tried again while the others go on."""
        self._backlog = backlog
        self._pace = pace
        self._metrics = Metrics() if metrics is None else metrics
        self._batches = Batches(pipeline.chunker, letters, self._metrics, backlog.clock, on_batch)
        self._lanes = Lanes(
            home,
            pipeline,
            self._metrics,
            capacity=pace.open_namespaces,
            retention=pace.retention,
            take_over=take_over,
            source=backlog.source,
        )
        self._ahead = Ahead(pipeline.extractor, pipeline.chunker, self._next_batch, self._lanes.open)
        self._mending = mending or pipeline
        self._degraded = Degraded(home, self._mending, pace.mend_seconds, backlog.owns)
        replayed = Batches(pipeline.chunker, letters, self._metrics, backlog.clock, _unheard, replayed=True)
        self.renewals = Renewals(
            home, pipeline, replayed, self._metrics, self.troubles, pace.exact_max, on=renew, owns=backlog.owns
        )
        """Namespaces that are being made anew."""
        self._last: dict[str, int] = {}
        """Last position of every namespace that has events waiting, as far as the backlog was looked at."""
        self.watermark = 0
        """Stamp (microseconds) of the newest event in a snapshot that this applier made or went on from."""
        self._checkpoint_at = time.monotonic() + pace.checkpoint_seconds
        self._clean_at = time.monotonic() + pace.clean_seconds
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Run in a thread of its own until `close`; what stops it is kept in `error`."""
        self._thread = threading.Thread(target=self._run, name="gistream-applier", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish the batch under way, make everything durable and let go."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.checkpoint()
            self.renewals.close()
        finally:
            self._lanes.close()

    def step(self) -> bool:
        """Apply one batch of every namespace that has events waiting; False if none had."""
        renewing = self.renewals.step()
        self._look()
        due = self._due()
        try:
            for place, name in enumerate(due):
                if self._stopping.is_set():
                    break
                self._ahead.look(due[place:])
                self._turn(name)
                # After each of them: a round of a thousand namespaces takes longer than a checkpoint may wait.
                self._housekeeping()
            self._mend()
            if not due:
                self._housekeeping()
        except WriterFenced:
            self._metrics.count("gistream_writers_fenced_total")
            raise
        return renewing or bool(due)

    def writers(self) -> list[Writer]:
        """Writers of the namespaces that are open."""
        return self._lanes.writers()

    def checkpoint(self) -> None:
        """Make every commit durable, then let the backlog forget the events that are in them."""
        if durable := self._lanes.checkpoint():
            self._backlog.durable(durable)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if not self.step():
                    self._backlog.wait(timeout=0.2)
        except Exception as error:
            # The service reports it: health/ready says no, and every write still goes to the log.
            self.error = error

    def _look(self) -> None:
        """See which namespaces got events since the last look."""
        for name, last in self._backlog.news().items():
            self._last[name] = max(last, self._last.get(name, last))

    def _due(self) -> list[str]:
        """Namespaces whose turn it is, those first that are open: none of them is closed only to be opened again.

        What has nothing left to do is forgotten, so that a look costs what waits and not what ever was.
        """
        due = []
        for name in [name for name in self._last if not self._held_up(name)]:
            if self._position(name) < self._last[name]:
                due.append(name)
            else:
                del self._last[name]
        return sorted(due, key=lambda name: self._lanes.get(name) is None)

    def _position(self, name: str) -> int:
        """How far a namespace has got; NOTHING where opening it has to tell."""
        lane = self._lanes.get(name)
        return self._backlog.position(name) if lane is None else lane.position

    def _held_up(self, name: str) -> bool:
        """Whether a namespace waits: for its next attempt, or until it is made anew."""
        return self.troubles.waits(name) or name in self.renewals

    def _turn(self, name: str) -> None:
        """Apply one batch of a namespace; what is wrong with it alone is noted, and tried again later."""
        try:
            lane = self._lanes.open(name)
        except (GistreamError, OSError) as error:
            self.troubles.note(name, error)
            return
        batch = self._next_batch(name, lane.position)
        if not batch:
            # Trimmed, or held already: nothing of this namespace is left to read.
            self._last[name] = lane.position
            self._backlog.reached(name, lane.position)
            return
        try:
            self._batches.apply(name, lane, batch)
            self.watermark = max(self.watermark, lane.opened.writer.manifest.watermark)
        except WriterFenced:
            raise
        except (GistreamError, OSError) as error:
            self.troubles.note(name, error)
            lane.foreseen.clear()
            if not isinstance(error, ModelError):
                self._lanes.leave(name)
            return
        self.troubles.over(name)
        self._backlog.reached(name, lane.position)
        self._upkeep(name, partial(lane.tidy, self._pace.exact_max))

    def _next_batch(self, name: str, after: int) -> list[Accepted]:
        return self._backlog.read(name, after, self._pace.batch_events, self._pace.batch_bytes)

    def _mend(self) -> None:
        """Read some degraded passages again, where it is time to; what fails here is tried again next time."""
        if (found := self._degraded.next()) is None or self._stopping.is_set():
            return
        name, keys = found
        try:
            lane = self._lanes.open(name)
            mended = self._reread(name, lane, keys)
            self._metrics.count("gistream_passages_mended_total", mended)
        except WriterFenced:
            raise
        except (GistreamError, OSError) as error:
            _log.warning("degraded passages of namespace %s cannot be read again yet: %s", name, error)
            return
        self._upkeep(name, partial(lane.tidy, self._pace.exact_max))

    def _reread(self, name: str, lane: Lane, keys: Sequence[Key]) -> int:
        # What is known by now is not bought, and what is bought is kept, as wherever a passage is read.
        with closing(understanding_of(self.home, name, self._mending)) as understood:
            return mend(lane.opened.writer, keys, understood.reading or self._mending.extractor.extract)

    def _upkeep(self, name: str, work: Callable[[], None]) -> None:
        """Do what keeps a namespace cheap; what is wrong with it alone is noted."""
        try:
            work()
        except WriterFenced:
            raise
        except Exception as error:
            # Whatever maintenance met, the commits are whole; the namespace is opened anew and looked at again.
            self.troubles.note(name, error)
            self._lanes.leave(name)

    def _housekeeping(self) -> None:
        """What keeps reads cheap and the log short; every part only when it is due."""
        now = time.monotonic()
        checked, minute = now >= self._checkpoint_at, now >= self._clean_at
        if minute:
            self._lanes.let_go_quiet(self._pace.quiet_seconds)
        if checked:
            self.checkpoint()
            self._checkpoint_at = time.monotonic() + self._pace.checkpoint_seconds
        if checked or minute:
            for name in self._lanes.names():
                self._upkeep(name, partial(self._lanes.clean, name, thorough=minute))
        if minute:
            self._clean_at = time.monotonic() + self._pace.clean_seconds
