"""Being told of changes in a folder, so that the next scan comes at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Final

from watchfiles import watch
from watchfiles.main import FileChange

_log = logging.getLogger(__name__)

_LOOK_MILLISECONDS: Final = 500
_TOGETHER_MILLISECONDS: Final = 100
"""Changes that follow each other so closely are one."""


class Watch:
    """Waits for changes below one folder; where the system cannot tell of them, it only waits."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._changes: Iterator[set[FileChange]] | None = None

    def wait(self, stop: Event, seconds: float) -> None:
        """Until there is a change, `seconds` have passed, or `stop` is set. The first call returns as soon as changes
        are noticed, so that a scan after it misses nothing.
        """
        deadline = time.monotonic() + seconds
        is_first = self._changes is None
        if self._changes is None:
            self._changes = self._watch(stop)
        try:
            for changes in self._changes:
                if changes or is_first or stop.is_set() or time.monotonic() >= deadline:
                    return
        except Exception as error:
            # Too many folders for the system, or the folder is gone: the scans go on, and a later wait tries again.
            _log.warning("changes in %s are not told, so it is scanned from time to time: %s", self._root, error)
            self._changes = None
        stop.wait(max(0.0, deadline - time.monotonic()))

    def _watch(self, stop: Event) -> Iterator[set[FileChange]]:
        return watch(
            self._root,
            watch_filter=None,
            debounce=_TOGETHER_MILLISECONDS,
            stop_event=stop,
            rust_timeout=_LOOK_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )
