"""Namespaces that other settings made, brought to the settings of now between the batches of a runner."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from index.errors import GistreamError, ModelError, NotFound, StoreError
from index.home import GRACE_SECONDS, Home
from index.manifest import Fingerprint, Manifests
from index.metrics import Metrics

from .batch import Batches
from .lane import Lane
from .pipeline import Pipeline
from .renewal import Renewal
from .trouble import Troubles

BATCH = 64
"""Documents of a namespace in one turn: others wait for it."""
LOOK_SECONDS = 5.0
"""Between two attempts to find out what has to be made anew, while the model does not answer."""
TELL_SECONDS = 30.0
"""Between two lines of the log about one namespace under way."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _UnderWay:
    renewal: Renewal
    lane: Lane
    since: float = field(default_factory=time.monotonic)
    told: float = field(default_factory=time.monotonic)


class Renewals:
    """Makes namespaces anew whose fingerprint is not the pipeline's; used from the runner's thread.

    Each gets one batch a turn, beside the namespaces that have events waiting. Its own events wait until its successor
    has taken over. Where that cannot be done now, it is noted in `troubles` and tried again.
    """

    def __init__(
        self,
        home: Home,
        pipeline: Pipeline,
        batches: Batches,
        metrics: Metrics,
        troubles: Troubles,
        exact_max: int,
        *,
        on: bool,
        owns: Callable[[str], bool],
    ) -> None:
        """`batches` commits to the successors, whose vectors are indexed from `exact_max` on. Where it is not `on`,
        nothing is made anew, and never what the caller does not own.
        """
        self._home = home
        self._pipeline = pipeline
        self._batches = batches
        self._metrics = metrics
        self._troubles = troubles
        self._exact_max = exact_max
        self._owns = owns
        self._look_at: float | None = 0.0 if on else None
        """When to look for what is to be made anew; None once that is known."""
        self._waiting: dict[str, _UnderWay | None] = {}
        self._sweep_at: dict[str, float] = {}
        """When nobody reads the former index of a namespace any more."""

    def __contains__(self, name: str) -> bool:
        return name in self._waiting

    def progress(self) -> Mapping[str, tuple[int, int]]:
        """Documents done, and documents in all, of every namespace that is being made anew. Any thread may ask."""
        under_way = [(name, found.renewal.replay) for name, found in list(self._waiting.items()) if found is not None]
        return {name: (replay.done, replay.total) for name, replay in under_way}

    def step(self) -> bool:
        """Apply one batch of every namespace that is made anew; False if there was nothing to do."""
        if self._look_at is not None and time.monotonic() >= self._look_at:
            self._look()
        for name in [name for name, moment in self._sweep_at.items() if time.monotonic() >= moment]:
            del self._sweep_at[name]
            self._home.sweep(name)
        due = [name for name in self._waiting if not self._troubles.waits(name)]
        for name in due:
            self._turn(name)
        return bool(due)

    def close(self) -> None:
        """Let go of what is under way; whoever comes next goes on with it."""
        for found in self._waiting.values():
            if found is not None:
                found.renewal.close()
        self._waiting.clear()

    def _look(self) -> None:
        """Find the namespaces that were made otherwise: once, since this process makes no others."""
        try:
            wanted = self._pipeline.fingerprint
        except ModelError:
            # It has to be asked how long its vectors are.
            self._look_at = time.monotonic() + LOOK_SECONDS
            return
        self._look_at = None
        for name in filter(self._owns, self._home.known()):
            # What cannot be read is not made anew: whoever opens it for writing says what is wrong.
            with suppress(StoreError, NotFound):
                if self._made(name) != wanted:
                    self._waiting[name] = None

    def _made(self, name: str) -> Fingerprint:
        return Manifests(self._home.incarnation(name) / "manifests").newest().fingerprint

    def _turn(self, name: str) -> None:
        try:
            if self._waiting[name] is None and self._made(name) == self._pipeline.fingerprint:
                # By another process, since we looked.
                self._over(name)
                return
            # For one that was deleted meanwhile nothing more is paid.
            self._home.incarnation(name)
            found = self._waiting[name] = self._waiting[name] or self._begin(name)
            if found.renewal.replay.step(partial(self._batches.apply, name, found.lane)):
                found.lane.tidy(self._exact_max)
                self._tell(name, found)
            else:
                found.renewal.finish()
                self._over(name)
                self._sweep_at[name] = time.monotonic() + GRACE_SECONDS
                self._metrics.count("gistream_rebuilds_total")
                _log.info("namespace %s was made anew in %.0f s", name, time.monotonic() - found.since)
            self._troubles.over(name)
        except NotFound:
            # Deleted meanwhile: what comes for it now begins with the settings of now.
            self._over(name)
            self._home.sweep(name, grace=0)
        except (GistreamError, OSError) as error:
            self._troubles.note(name, error)
            if not isinstance(error, ModelError):
                self._leave(name)

    def _begin(self, name: str) -> _UnderWay:
        renewal = Renewal(self._home, name, self._pipeline, BATCH)
        # What earlier attempts left and this one has no use for.
        self._home.sweep(name)
        _log.warning(
            "namespace %s was made with other settings and is made anew from its %d documents; it answers as it was "
            "until then, and new events wait",
            name,
            renewal.replay.total,
        )
        return _UnderWay(renewal, Lane(renewal.opened, self._metrics))

    def _over(self, name: str) -> None:
        self._leave(name)
        del self._waiting[name]
        self._troubles.over(name)

    def _leave(self, name: str) -> None:
        if (found := self._waiting[name]) is not None:
            found.renewal.close()
            self._waiting[name] = None

    def _tell(self, name: str, found: _UnderWay) -> None:
        replay = found.renewal.replay
        if time.monotonic() - found.told >= TELL_SECONDS:
            found.told = time.monotonic()
            _log.info("namespace %s is made anew: %d of %d documents", name, replay.done, replay.total)
