"""The watchdog of a worker: what looks alive and gets nowhere has to end, so that it is started again."""

from __future__ import annotations

import time
from collections.abc import Callable

from index.errors import Stalled


class Watchdog:
    """Knows when something was last finished."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`seconds` without progress are too many, by a `clock` in seconds."""
        self._seconds = seconds
        self._clock = clock
        self._last = clock()

    def progress(self) -> None:
        """Something was finished, or there was nothing to do."""
        self._last = self._clock()

    def verdict(self) -> Stalled | None:
        """What is wrong; None while there is still time."""
        stood = self._clock() - self._last
        if stood < self._seconds:
            return None
        return Stalled(
            f"nothing was finished for {stood:.0f} s although there is something to do",
            hint="the worker ends and is started again; nothing is lost",
        )
