"""How far the workers are with what Kafka has accepted, seen by a thread that looks twice a second."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from typing import Final, Self

from index.errors import GistreamError, Torn
from index.home import Home
from index.metrics import Metrics
from streams.connection import APPLY, UNDERSTAND
from streams.marks import Look, Marks
from streams.position import NOTHING, positions
from streams.topic_lag import LagMeter, PartitionLag
from streams.wire import namespace_partition

from .stream import Stream

LOOK_SECONDS: Final = 0.5
SILENT_SECONDS: Final = 5.0
"""Without a look for so long, the broker counts as away."""

_log = logging.getLogger("gistream")


class Progress:
    """Looks from `__enter__` to `__exit__`. Its figures are those of the last look; safe for threads."""

    def __init__(self, stream: Stream, home: Home) -> None:
        self._stream = stream
        self._home = home
        self._lock = threading.Lock()
        self._marks = Marks()
        self._looked = -math.inf
        self._waiting = 0
        self._oldest: int | None = None
        self._letters: int | None = None
        self._error: GistreamError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gistream-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def watch(self, metrics: Metrics) -> None:
        """Have the gauges of ingest read from the last look."""
        metrics.watch("gistream_dead_letters_waiting", lambda: self._letters or 0)
        metrics.watch("gistream_lag_events", self.events)
        metrics.watch("gistream_lag_seconds", self.seconds)

    def staleness(self, namespace: str, held: Mapping[str, int]) -> float:
        """Seconds since all that was accepted is in a snapshot at these positions, or more; `inf` while that is not
        known: events were waiting when this process began to look.
        """
        if math.isinf(self._looked):
            return math.inf
        topic = self._stream.register.understood
        partition = namespace_partition(namespace, topic.partitions)
        offset = held.get(topic.source(partition), NOTHING) + 1
        try:
            is_newest = dict(held) == dict(positions(self._home, namespace))
        except Torn:
            is_newest = False
        with self._lock:
            moment = self._marks.reflected(partition, offset, is_newest=is_newest)
        return math.inf if moment is None else time.monotonic() - moment

    def seconds(self) -> float:
        """The largest staleness of all newest snapshots; 0 where no event waits."""
        with self._lock:
            moment = self._marks.everywhere()
        if not self._waiting:
            return 0.0
        if moment is not None:
            return time.monotonic() - moment
        # Since before the first look: the oldest record of a topic says it, though not when what it holds was accepted.
        return 0.0 if self._oldest is None else max(0.0, time.time() - self._oldest / 1e6)

    def events(self) -> int:
        """How many accepted events were not yet applied."""
        return self._waiting

    def letters(self) -> int | None:
        """How many dead letters wait; None before the first look."""
        return self._letters

    def trouble(self) -> str | None:
        """Why nothing can be accepted at present; None while all is well."""
        if time.monotonic() < self._looked + SILENT_SECONDS:
            return None
        return "Kafka has not answered yet" if self._error is None else f"Kafka cannot be used: {self._error}"

    def check(self) -> None:
        """Raises what keeps Kafka from being used, where that has been so for a while."""
        if (error := self._error) is not None and self.trouble() is not None:
            raise type(error)(error.message, hint=error.hint)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with LagMeter(self._stream.connection) as meter:
                    while not self._stopping.is_set():
                        self._look(meter)
                        self._error = None
                        self._stopping.wait(LOOK_SECONDS)
            except GistreamError as error:
                if self._error is None:
                    _log.warning("how far the workers are cannot be seen: %s", error)
                self._error = error
                self._stopping.wait(LOOK_SECONDS)

    def _look(self, meter: LagMeter) -> None:
        # Events whose place nobody here knows are accepted by nobody here, either.
        _ = self._stream.register
        at = time.monotonic()
        lags = meter.read()
        understood, applied = (_in_order(lags[role]) for role in (UNDERSTAND, APPLY))
        letters = self._stream.letters.count()
        look = Look(
            at,
            understood=list(map(_next, understood)),
            applied=list(map(_next, applied)),
            documents_end=[lag.end for lag in understood],
            understood_end=[lag.end for lag in applied],
        )
        with self._lock:
            self._marks.learn(look)
        self._waiting = sum(lag.waiting for lag in (*understood, *applied))
        self._oldest = min((lag.oldest for lag in (*understood, *applied) if lag.oldest is not None), default=None)
        self._letters = letters
        self._looked = time.monotonic()


def _in_order(lags: Mapping[int, PartitionLag]) -> list[PartitionLag]:
    return [lags[partition] for partition in sorted(lags)]


def _next(lag: PartitionLag) -> int:
    """Where the role goes on. An offset beyond the end was committed for a former topic of this name."""
    return lag.next if lag.next <= lag.end else lag.begin
