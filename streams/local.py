"""The embedded runner: applies the local log of one data folder."""

from __future__ import annotations

import time
from typing import Unpack

from index.errors import GistreamError
from index.home import Home
from index.lock import WriterLock

from .applier import Applier, Options
from .backlog import LogBacklog
from .dead_letters import DeadLetters
from .log import Log
from .pipeline import Pipeline
from .position import align, reached

_IDLE_SECONDS = 0.02


class Runner(Applier):
    """Applies the log of one data folder; a lock keeps it the only one.

    Either `drain` it from one thread, or `start` its own.
    """

    def __init__(
        self, home: Home, log: Log, pipeline: Pipeline, *, take_over: bool = False, **options: Unpack[Options]
    ) -> None:
        """See Applier. Raises WriterBusy where another process already runs this folder, unless `take_over`."""
        home.data.mkdir(parents=True, exist_ok=True)
        self._lock = WriterLock(home.data / "runner.lock")
        self._lock.acquire(take_over=take_over)
        self.log = log
        self.letters = DeadLetters(log)
        align(log, home)
        super().__init__(home, LogBacklog(log, home), self.letters, pipeline, take_over=take_over, **options)

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
        try:
            super().close()
        finally:
            self._lock.release()

    def _behind(self, last: int) -> bool:
        return any(min(position, last) > reached(self.home, name) for name, position in self._last.items())
