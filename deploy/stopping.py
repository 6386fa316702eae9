"""Being told to stop: by a service manager, or by Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
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


def run_until_signalled(work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `work` in an event loop of its own; it is given an event that means the same. Raises what it does."""

    async def main() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def on_signal(number: signal.Signals) -> None:
            loop.remove_signal_handler(number)
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal, number)
        await work(stop)

    asyncio.run(main())
