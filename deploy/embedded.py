"""The embedded server: ingest and query in one process, with the log as the service's inbox."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Self

from index.errors import GistreamError
from index.home import Home
from index.metrics import Metrics
from index.models.base import Embedder
from index.types import DocumentEvent
from query.history import History
from query.parts import Parts
from query.readers import PLACES, Readers
from query.service import create_app
from streams.dead_letters import DeadLetters
from streams.events import validated
from streams.local import Runner
from streams.log import Log

from .assembly import build_embedder, build_pipeline, limits, log_path, open_book, open_book_if_any, open_log, pace
from .embedders import Embedders
from .feed_status import statuses
from .feeding import Feeding
from .http import HttpServer
from .lag import Lag
from .measured import MeasuredEmbedder, measured, watch_runner
from .receiving import receiver
from .settings import Settings
from .stopping import until_signalled
from .warm import WarmUp

_log = logging.getLogger("gistream")

_LOOK_SECONDS = 1.0
"""Between two looks whether all is well."""


class Embedded:
    """The whole of gistream over one data folder: runs from `__enter__` to `__exit__`.

    Leaving it stops the HTTP server first, finishes the batch under way and makes it durable; what was accepted and is
    not yet applied is in the log, where the next server finds it.
    """

    def __init__(self, settings: Settings, *, read_only: bool = False, take_over: bool = False) -> None:
        self._settings = settings
        self._read_only = read_only
        self._take_over = take_over
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Raises WriterBusy where another process writes the folder (unless `take_over`), BadRequest where the address
        is taken, ModelError where a model does not answer, StoreError where the log cannot be opened.
        """
        with ExitStack() as stack:
            home, metrics, warming = Home(self._settings.data), Metrics(), WarmUp()
            readers = Readers(
                home, metrics, capacity=self._settings.open_namespaces, exact_max=self._settings.exact_max
            )
            history = History(readers, metrics)
            metrics.watch("gistream_namespaces_open", readers.__len__, role="reader")
            metrics.watch("gistream_older_snapshots_held", history.__len__)
            for place in PLACES:
                metrics.watch("gistream_vectors_open", partial(readers.vectors, place), place=place)
            if self._read_only:
                parts = self._reading(stack, readers, history, metrics)
            else:
                parts = self._writing(stack, readers, history, metrics)
            parts = replace(parts, not_ready=partial(_first, parts.not_ready, warming.unfinished))
            self._not_ready = parts.not_ready
            stack.enter_context(readers)
            self.server = stack.enter_context(HttpServer(create_app(parts), self._settings.host, self._settings.port))
            stack.enter_context(warming)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """Base address of the service."""
        return self.server.url

    @property
    def trouble(self) -> str | None:
        """What /health/ready says when it says no; None while all is well."""
        return self._not_ready()

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

    def _embedders(self, present: Embedder, metrics: Metrics) -> Embedders:
        return Embedders(self._settings, present, partial(MeasuredEmbedder, metrics=metrics))

    @property
    def _decode(self) -> Callable[..., DocumentEvent]:
        return partial(validated, limits=limits(self._settings))


def serve(settings: Settings, *, read_only: bool = False, take_over: bool = False) -> None:
    """Serve until SIGTERM or SIGINT, then finish the batch under way, make it durable and return.

    A second signal ends the process at once. Where indexing has stopped, the service goes on: it stores what comes and
    answers from what is visible, and /health/ready says no. Raises what `Embedded` raises at the start, and
    GistreamError when the HTTP server ends by itself.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with until_signalled() as stop, Embedded(settings, read_only=read_only, take_over=take_over) as embedded:
        _log.info("gistream listens on %s", embedded.url)
        told = None
        while not stop.wait(_LOOK_SECONDS):
            if (trouble := embedded.trouble) != told:
                if trouble is None:
                    _log.info("ready")
                else:
                    _log.warning("not ready: %s", trouble)
                told = trouble
            if not embedded.server.running:
                raise GistreamError("the HTTP server ended by itself", hint="its log says why")
        _log.info("stopping: the batch under way is finished and made durable")


def _unknown(*_: object) -> None:
    return None


def _first(*reasons: Callable[[], str | None]) -> str | None:
    """What the first of them says that says anything."""
    return next((said for reason in reasons if (said := reason()) is not None), None)


def _stopped(runner: Runner) -> str | None:
    error = runner.error
    return None if error is None else f"indexing has stopped: {type(error).__name__}: {error}"
