"""What went wrong with which namespace, and when it is tried again: one in trouble must not hold up the others."""

from __future__ import annotations

import logging
import time

PAUSES = (0.2, 1.0, 5.0, 20.0)

_log = logging.getLogger(__name__)


def pause(failures: int) -> float:
    """Seconds before something is tried again that failed so often before."""
    return PAUSES[min(failures, len(PAUSES) - 1)]


class Troubles:
    """Namespaces whose batch could not be applied though nothing is wrong with its events.

    A model may be away, a disk full, files damaged, or settings not those of the index. Their events wait in the log.
    """

    def __init__(self) -> None:
        self._errors: dict[str, Exception] = {}
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._errors)

    def of(self, name: str) -> Exception | None:
        """What is wrong with a namespace now."""
        return self._errors.get(name)

    def all(self) -> dict[str, Exception]:
        """What is wrong, by namespace."""
        return dict(self._errors)

    def waits(self, name: str) -> bool:
        """Whether it is too early to try a namespace again."""
        return time.monotonic() < self._not_before.get(name, 0.0)

    def note(self, name: str, error: Exception) -> None:
        """Let a namespace wait, longer each time."""
        failures = self._failures.get(name, 0)
        if str(self._errors.get(name)) != str(error):
            _log.error("namespace %s is not being indexed: %s: %s", name, type(error).__name__, error)
        self._errors[name] = error
        self._failures[name] = failures + 1
        self._not_before[name] = time.monotonic() + pause(failures)

    def over(self, name: str) -> None:
        """A batch of the namespace was applied."""
        if self._errors.pop(name, None) is not None:
            _log.info("namespace %s is being indexed again", name)
            del self._failures[name], self._not_before[name]
