"""A server over one data folder: what answers, in whichever way it is kept fresh."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
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
from streams.events import validated

from .assembly import limits
from .embedders import Embedders
from .http import HttpServer
from .logs import log_plainly
from .measured import MeasuredEmbedder
from .settings import Settings
from .stopping import until_signalled
from .warm import WarmUp

_log = logging.getLogger("gistream")

_LOOK_SECONDS = 1.0
"""Between two looks whether all is well."""


class Server(ABC):
    """Snapshots behind an HTTP server, from `__enter__` to `__exit__`, which stops the HTTP server first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Raises BadRequest where the address is taken, ModelError where a model does not answer, and what `_parts`
        raises.
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
            parts = self._parts(stack, readers, history, metrics)
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

    @abstractmethod
    def _parts(self, stack: ExitStack, readers: Readers, history: History, metrics: Metrics) -> Parts:
        """What the service is made of besides; what has to be closed goes on the stack."""
        ...

    def _embedders(self, present: Embedder, metrics: Metrics) -> Embedders:
        return Embedders(self._settings, present, partial(MeasuredEmbedder, metrics=metrics))

    @property
    def _decode(self) -> Callable[..., DocumentEvent]:
        return partial(validated, limits=limits(self._settings))


def serve(server: Server) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is under way, make it durable and return.

    A second signal ends the process at once. Where indexing has stopped, the service goes on: it stores what comes and
    answers from what is visible, and /health/ready says no. Raises what entering the server raises at the start, and
    GistreamError when the HTTP server ends by itself.
    """
    log_plainly()
    with until_signalled() as stop, server:
        _log.info("gistream listens on %s", server.url)
        told = None
        while not stop.wait(_LOOK_SECONDS):
            if (trouble := server.trouble) != told:
                if trouble is None:
                    _log.info("ready")
                else:
                    _log.warning("not ready: %s", trouble)
                told = trouble
            if not server.server.running:
                raise GistreamError("the HTTP server ended by itself", hint="its log says why")
        _log.info("stopping: what is under way is finished and made durable")


def _first(*reasons: Callable[[], str | None]) -> str | None:
    """What the first of them says that says anything."""
    return next((said for reason in reasons if (said := reason()) is not None), None)
