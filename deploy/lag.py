"""How far what is visible lags behind what was accepted, as the log tells it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from index.errors import GistreamError
from index.home import Home
from streams.log import SOURCE, Log
from streams.position import reached

from .assembly import log_path
from .settings import Settings


def left_in_log(settings: Settings) -> int:
    """Events of the local log that no snapshot reflects; makes no log where there is none."""
    path = log_path(settings)
    if not path.exists():
        return 0
    with Log(path) as log:
        return Lag(log, Home(settings.data)).events()


class Lag:
    """Compares the log of a data folder with the snapshots of its namespaces. Safe for threads."""

    def __init__(self, log: Log, home: Home) -> None:
        self._log = log
        self._home = home

    def staleness(self, namespace: str, positions: Mapping[str, int]) -> float:
        """Age in seconds of the oldest accepted event that a snapshot at `positions` lacks; 0 where it lacks none."""
        return self._age(namespace, positions.get(SOURCE, 0))

    def seconds(self) -> float:
        """The largest staleness of all newest snapshots: one namespace that is stuck shows, even if the others flow."""
        return max((self._age(name, self._reached(name)) for name in self._log.pending()), default=0.0)

    def events(self) -> int:
        """How many accepted events the newest snapshots of all namespaces lack together."""
        return sum(self._log.waiting(name, self._reached(name)) for name in self._log.pending())

    def _age(self, namespace: str, position: int) -> float:
        since = self._log.waiting_since(namespace, position)
        return 0.0 if since is None else max(0.0, time.time() - since / 1e6)

    def _reached(self, name: str) -> int:
        try:
            return reached(self._home, name)
        except GistreamError:
            # Damaged, or deleted at this moment: it shows nothing, and that is what the figure has to tell.
            return 0
