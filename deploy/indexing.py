"""Seeing to it that events in the log become visible: by a runner of this process, or by the one that another has."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Self

from index.errors import GistreamError, WriterBusy
from index.home import Home
from streams.apply import Applied
from streams.local import Runner
from streams.log import Log

from .assembly import build_pipeline, pace
from .settings import Settings


class Indexing:
    """Applies the log of a data folder while no other process does, and takes over when that one ends."""

    def __init__(
        self,
        settings: Settings,
        log: Log,
        on_batch: Callable[[str, Applied], None] = lambda namespace, applied: None,
    ) -> None:
        self._settings = settings
        self._home = Home(settings.data)
        self._log = log
        self._pipeline = cache(partial(build_pipeline, settings))
        self._on_batch = on_batch
        self._runner: Runner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            self._runner.close()

    def attend(self, names: Collection[str] = ()) -> None:
        """Start a runner unless there is one, here or in another process.

        Raises what stopped our own, and what keeps it from indexing one of `names`, unless trying again may help.
        """
        if self._runner is None:
            try:
                self._runner = Runner(
                    self._home, self._log, self._pipeline(), pace=pace(self._settings), on_batch=self._on_batch
                )
            except WriterBusy:
                return
            self._runner.start()
        if self._runner.error is not None:
            raise self._runner.error
        for error in filter(None, map(self._runner.troubles.of, names)):
            if not (isinstance(error, GistreamError) and error.recoverable):
                raise error
