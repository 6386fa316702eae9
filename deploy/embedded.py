"""The embedded server: ingest and query in one process, with the log as the service's inbox."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from index.metrics import Metrics
from query.history import History
from query.parts import Parts
from query.readers import Readers
from streams.dead_letters import DeadLetters
from streams.local import Runner
from streams.log import Log

from .assembly import build_embedder, build_pipeline, limits, log_path, open_book, open_book_if_any, open_log, pace
from .feed_status import statuses
from .feeding import Feeding
from .lag import Lag
from .measured import MeasuredEmbedder, measured, watch_runner
from .receiving import receiver
from .server import Server
from .settings import Settings


class Embedded(Server):
    """The whole of gistream over one data folder.

    Leaving it finishes the batch under way and makes it durable; what was accepted and is not yet applied is in the
    log, where the next server finds it.
    """

    def __init__(self, settings: Settings, *, read_only: bool = False, take_over: bool = False) -> None:
        super().__init__(settings)
        self._read_only = read_only
        self._take_over = take_over

    def _parts(self, stack: ExitStack, readers: Readers, history: History, metrics: Metrics) -> Parts:
        """Raises WriterBusy where another process writes the folder (unless `take_over`), and StoreError where the log
        cannot be opened.
        """
        make = self._reading if self._read_only else self._writing
        return make(stack, readers, history, metrics)

    def _writing(self, stack: ExitStack, readers: Readers, history: History, metrics: Metrics) -> Parts:
        pipeline = measured(build_pipeline(self._settings, metrics), metrics)
        log = stack.enter_context(open_log(self._settings))
        lag = Lag(log, readers.home)
        runner = stack.enter_context(
            Runner(
                readers.home,
                log,
                pipeline,
                pace=pace(self._settings),
                take_over=self._take_over,
                metrics=metrics,
                renew=self._settings.rebuild_on_change,
            )
        )
        watch_runner(metrics, runner, lag)
        runner.start()
        book = stack.enter_context(open_book(self._settings))
        if self._settings.run_feeds:
            feeding = stack.enter_context(Feeding(self._settings, book, log, runner.letters, metrics))
            feeding.start()
        return Parts(
            readers=readers,
            history=history,
            embedders=self._embedders(pipeline.embedder, metrics),
            decode=self._decode,
            inbox=log,
            staleness=lag.staleness,
            dead_letters=runner.letters.count,
            not_ready=partial(_stopped, runner),
            rebuilding=runner.renewals.progress,
            metrics=metrics,
            receive=receiver(log, runner.letters, limits(self._settings)),
            feeds=partial(statuses, book),
            max_wait=self._settings.wait_timeout,
        )

    def _reading(self, stack: ExitStack, readers: Readers, history: History, metrics: Metrics) -> Parts:
        """A log that is there tells how far the snapshots lag behind; none is made where there is none."""
        path = log_path(self._settings)
        log = stack.enter_context(Log(path)) if path.exists() else None
        book = stack.enter_context(open_book_if_any(self._settings))
        return Parts(
            readers=readers,
            history=history,
            embedders=self._embedders(MeasuredEmbedder(build_embedder(self._settings), metrics), metrics),
            decode=self._decode,
            inbox=None,
            staleness=Lag(log, readers.home).staleness if log else _unknown,
            dead_letters=DeadLetters(log).count if log else _unknown,
            not_ready=lambda: None,
            metrics=metrics,
            feeds=partial(statuses, book) if book else dict,
            max_wait=self._settings.wait_timeout,
        )


def _unknown(*_: object) -> None:
    return None


def _stopped(runner: Runner) -> str | None:
    error = runner.error
    return None if error is None else f"indexing has stopped: {type(error).__name__}: {error}"
