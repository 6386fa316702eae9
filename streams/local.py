"""The embedded runner: carries events from the log into their namespaces, one batch after another."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Self

from index.errors import GistreamError, ModelError, Torn, WriterFenced
from index.home import Home
from index.lock import WriterLock
from index.maintenance import Retention
from index.metrics import Metrics
from index.types import Accepted
from index.writer import Writer

from .ahead import Ahead
from .batch import Batches, OnBatch
from .dead_letters import DeadLetters
from .lane import Lane
from .log import Log
from .mend import Degraded, mend
from .pipeline import Pipeline, open_namespace
from .position import align, reached
from .trouble import Troubles

WORTH_CLEANING = 64
"""Snapshots that are cleaned up together before their minute is over; many at once would hold up the next commit."""
_IDLE_SECONDS = 0.02

_log = logging.getLogger(__name__)


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


class Runner:
    """Applies the log of one data folder; a lock keeps it the only one.

    Namespaces take turns, one batch each, so that a busy one does not starve the others. Use it from one thread:
    either `drain` it, or `start` its own. A batch is committed before its position moves, so a killed runner goes on
    where the manifest says.
    """

    def __init__(
        self,
        home: Home,
        log: Log,
        pipeline: Pipeline,
        *,
        pace: Pace = Pace(),
        take_over: bool = False,
        on_batch: OnBatch = lambda namespace, applied: None,
        metrics: Metrics | None = None,
    ) -> None:
        """Raises WriterBusy where another process already runs this folder, unless `take_over`.

        `on_batch` is told of every batch that was committed, for progress; what is measured goes to `metrics`.
        """
        home.data.mkdir(parents=True, exist_ok=True)
        self._lock = WriterLock(home.data / "runner.lock")
        self._lock.acquire(take_over=take_over)
        self.home = home
        self.log = log
        align(log, home)
        self.letters = DeadLetters(log)
        self.error: Exception | None = None
        """What stopped the runner's own thread; None while it is well."""
        self.troubles = Troubles()
        """What keeps single namespaces from being indexed; they are tried again while the others go on."""
        self._pipeline = pipeline
        self._pace = pace
        self._take_over = take_over
        self._metrics = Metrics() if metrics is None else metrics
        self._batches = Batches(pipeline.chunker, self.letters, self._metrics, log.clock, on_batch)
        self._ahead = Ahead(pipeline.extractor, pipeline.chunker, self._next_batch, self._open)
        self._degraded = Degraded(home, pipeline, pace.mend_seconds)
        self._lanes: dict[str, Lane] = {}
        self._last: dict[str, int] = {}
        self._seen = 0
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
        self._thread = threading.Thread(target=self._run, name="gistream-runner", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Apply everything that is in the log now; waits for models that are away.

        Raises what keeps a namespace from being indexed, unless trying again may help.
        """
        last = self.log.last_position()
        while self.step() or self._behind(last):
            for error in self.troubles.all().values():
                if not (isinstance(error, GistreamError) and error.recoverable):
                    raise error
            if self.troubles:
                time.sleep(_IDLE_SECONDS)
        self.checkpoint()

    def close(self) -> None:
        """Finish the batch under way, make everything durable and let go."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.checkpoint()
            for lane in self._lanes.values():
                lane.opened.close()
        finally:
            self._lanes.clear()
            self._lock.release()

    def step(self) -> bool:
        """Apply one batch of every namespace that has events waiting; False if none had."""
        self._look()
        due = [name for name in self._last if self._is_due(name)]
        try:
            for place, name in enumerate(due):
                if self._stopping.is_set():
                    break
                self._ahead.look(due[place:])
                self._turn(name)
            self._mend()
            self._housekeeping()
        except WriterFenced:
            self._metrics.count("gistream_writers_fenced_total")
            raise
        return bool(due)

    def writers(self) -> list[Writer]:
        """Writers of the namespaces that are open."""
        return [lane.opened.writer for lane in list(self._lanes.values())]

    def checkpoint(self) -> None:
        """Make every commit durable, then let the log forget the events that are in them."""
        moved = {name: lane for name, lane in self._lanes.items() if lane.position > lane.durable}
        if not moved:
            return
        with self._metrics.timed("gistream_checkpoint_seconds"):
            for name, lane in moved.items():
                lane.checkpoint()
                self.log.set_mark(name, lane.durable)
            self.log.trim()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if not self.step():
                    self.log.wait(self._seen, timeout=0.2)
        except Exception as error:
            # The service reports it: health/ready says no, and every write still goes to the log.
            self.error = error

    def _look(self) -> None:
        """See which namespaces got events since the last look."""
        for name, last in self.log.pending(self._seen).items():
            self._last[name] = max(last, self._last.get(name, 0))
            self._seen = max(self._seen, last)

    def _is_due(self, name: str) -> bool:
        if self.troubles.waits(name):
            return False
        lane = self._lanes.get(name)
        if lane is None:
            try:
                return self._last[name] > reached(self.home, name)
            except Torn:
                # Opening it for writing goes back to what holds, and tells what does not.
                return True
        return self._last[name] > lane.position

    def _behind(self, last: int) -> bool:
        return any(min(position, last) > reached(self.home, name) for name, position in self._last.items())

    def _turn(self, name: str) -> None:
        """Apply one batch of a namespace; what is wrong with it alone is noted, and tried again later."""
        try:
            lane = self._open(name)
        except (GistreamError, OSError) as error:
            self.troubles.note(name, error)
            return
        batch = self._next_batch(name, lane.position)
        if not batch:
            # Trimmed or replayed elsewhere: nothing of this namespace is left to read.
            self._last[name] = lane.position
            return
        try:
            self._batches.apply(name, lane, batch)
        except WriterFenced:
            raise
        except (GistreamError, OSError) as error:
            self.troubles.note(name, error)
            lane.foreseen.clear()
            if not isinstance(error, ModelError):
                self._leave(name)
            return
        self.troubles.over(name)

    def _next_batch(self, name: str, after: int) -> list[Accepted]:
        return self.log.read(name, after, self._pace.batch_events, self._pace.batch_bytes)

    def _mend(self) -> None:
        """Read some degraded passages again, where it is time to; what fails here is tried again next time."""
        if (found := self._degraded.next()) is None or self._stopping.is_set():
            return
        name, keys = found
        try:
            opened = self._open(name).opened
            self._metrics.count("gistream_passages_mended_total", mend(opened.writer, keys, opened.understand))
        except WriterFenced:
            raise
        except (GistreamError, OSError) as error:
            _log.warning("degraded passages of namespace %s cannot be read again yet: %s", name, error)

    def _leave(self, name: str) -> None:
        """Let go of a namespace; its next batch opens it anew."""
        self._lanes.pop(name).opened.release()

    def _open(self, name: str) -> Lane:
        pointer, lane = self.home.pointer(name), self._lanes.get(name)
        if lane is not None and (
            pointer is None or pointer.deleted or pointer.incarnation != lane.opened.writer.folder.name
        ):
            # Deleted or made anew meanwhile.
            self._leave(name)
        if name not in self._lanes:
            opened = open_namespace(self.home, name, self._pipeline, take_over=self._take_over)
            self._lanes[name] = Lane(opened, self._metrics)
        return self._lanes[name]

    def _housekeeping(self) -> None:
        """What keeps commits and reads cheap, and the log short; every part only when it is due."""
        now = time.monotonic()
        checked, minute = now >= self._checkpoint_at, now >= self._clean_at
        if checked:
            self.checkpoint()
            self._checkpoint_at = time.monotonic() + self._pace.checkpoint_seconds
        for name, lane in list(self._lanes.items()):
            try:
                lane.tidy()
                if minute:
                    self.home.sweep(name)
                if minute or checked:
                    lane.clean(self._pace.retention, least=1 if minute else WORTH_CLEANING)
            except WriterFenced:
                raise
            except Exception as error:
                # Whatever maintenance met, the commits are whole; the namespace is opened anew and looked at again.
                self.troubles.note(name, error)
                self._leave(name)
        if minute:
            self._clean_at = time.monotonic() + self._pace.clean_seconds
