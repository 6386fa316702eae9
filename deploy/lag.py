"""How far what is visible lags behind what was accepted, as the log tells it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from index.errors import GistreamError
from index.home import Home
from query.status import newest
from streams.apply import SOURCE
from streams.log import Log


class Lag:
    """Compares the log of a data folder with the snapshots of its namespaces. Safe for threads."""

    def __init__(self, log: Log, home: Home) -> None:
        self._log = log
        self._home = home

    def staleness(self, namespace: str, positions: Mapping[str, int]) -> float:
        """Age in seconds of the oldest accepted event that a snapshot at `positions` lacks; 0 where it lacks none."""
        waiting = self._log.read(namespace, positions.get(SOURCE, 0), limit_events=1, limit_bytes=0)
        return max(0.0, time.time() - waiting[0].stamp / 1e6) if waiting else 0.0

    def seconds(self) -> float:
        """The largest staleness of all newest snapshots: one namespace that is stuck shows, even if the others flow."""
        return max((self.staleness(name, self._positions(name)) for name in self._log.pending()), default=0.0)

    def _positions(self, name: str) -> Mapping[str, int]:
        pointer = self._home.pointer(name)
        if pointer is not None and pointer.deleted:
            return pointer.positions
        try:
            return newest(self._home, name).positions
        except GistreamError:
            # Not made yet, or damaged: it shows nothing, and that is what the figure has to tell.
            return {}
