"""Being told to stop: by a service manager, or by Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def until_signalled() -> Iterator[threading.Event]:
    """An event that SIGTERM or SIGINT sets; the second of them ends the process at once."""
    stop = threading.Event()

    def on_signal(number: int, _: object) -> None:
        # Whoever asks twice does not want to wait.
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    former = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
