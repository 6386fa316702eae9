"""The feeds that were added, followed side by side, each in a thread of its own: no source waits for another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from index.errors import GistreamError, WriterBusy
from index.lock import WriterLock
from index.metrics import Metrics
from index.types import Inbox
from streams.feeds.book import Book, Entry
from streams.feeds.deliver import Delivered
from streams.feeds.fetch import Fetcher
from streams.feeds.folder import SETTLE_SECONDS
from streams.feeds.follow import Follower
from streams.feeds.kinds import build
from streams.letter import Letters

from .assembly import foreign_connection, limits
from .settings import Settings

LOOK_SECONDS: Final = 0.5
"""Between two looks whether feeds were added or removed, and whether one that another process ran is free."""

GRACE_SECONDS: Final = 10.0
"""What a feed under way may still take once it is told to stop."""

AGAIN_SECONDS: Final = 30.0

_log = logging.getLogger(__name__)


def lock_of(settings: Settings, entry: Entry) -> WriterLock:
    """The lock of whoever runs this feed; a feed is run by one process at a time."""
    folder = settings.data / "feeds"
    folder.mkdir(parents=True, exist_ok=True)
    hint = "`gistream serve` runs all feeds unless told otherwise; stop it, or leave the feed to it"
    return WriterLock(folder / f"{entry.number}.lock", what=f"the feed {entry.name}", hint=hint)


@dataclass(slots=True)
class _Running:
    """One feed under way."""

    thread: threading.Thread
    stop: threading.Event


class Feeding:
    """Runs the feeds of the book, those that are added meanwhile too, until it is left."""

    def __init__(
        self,
        settings: Settings,
        book: Book,
        inbox: Inbox,
        letters: Letters,
        metrics: Metrics,
        *,
        names: Collection[str] = (),
    ) -> None:
        """`names`: only these; without any, all."""
        self._settings = settings
        self._book = book
        self._inbox = inbox
        self._letters = letters
        self._metrics = metrics
        self._names = frozenset(names)
        self._fetcher = Fetcher()
        self._running: dict[int, _Running] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look_after, name="gistream-feeds", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Tells all feeds to stop, and leaves one alone that does not within GRACE_SECONDS: it loses nothing."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for running in self._running.values():
            running.stop.set()
        deadline = time.monotonic() + GRACE_SECONDS
        for running in self._running.values():
            running.thread.join(max(0.0, deadline - time.monotonic()))
        self._fetcher.close()

    def start(self) -> None:
        """Follow the feeds until `__exit__`."""
        self._thread.start()

    def once(self, entry: Entry, on_delivered: Callable[[Delivered], None]) -> None:
        """Look at one feed's source once, in this thread. Raises WriterBusy where it runs elsewhere, and what
        Follower.once raises.
        """
        lock = lock_of(self._settings, entry)
        lock.acquire(take_over=False)
        try:
            self._follower(entry, 0.0, on_delivered).once()
        finally:
            lock.release()

    def _look_after(self) -> None:
        while not self._stopping.is_set():
            try:
                self._adjust()
            except (GistreamError, OSError) as error:
                _log.warning("the feeds that were added cannot be looked up: %s", error)
            self._stopping.wait(LOOK_SECONDS)

    def _adjust(self) -> None:
        """Let those run that are in the book, and no others."""
        entries = {entry.number: entry for entry in self._wanted()}
        for number in self._running.keys() - entries.keys():
            self._running[number].stop.set()
            if not self._running[number].thread.is_alive():
                del self._running[number]
        for number in entries.keys() - self._running.keys():
            self._start(entries[number])

    def _wanted(self) -> list[Entry]:
        return [
            entry
            for entry in self._book.entries()
            if not entry.removed and (not self._names or entry.name in self._names)
        ]

    def _start(self, entry: Entry) -> None:
        lock = lock_of(self._settings, entry)
        try:
            lock.acquire(take_over=False)
        except WriterBusy:
            return  # Another process runs it; when that one ends, it is our turn.
        stop = threading.Event()

        def follow() -> None:
            try:
                while not stop.is_set():
                    try:
                        return self._follower(entry, SETTLE_SECONDS).run(stop)
                    except Exception:
                        _log.exception("feed %s cannot be followed; again in %.0f s", entry.name, AGAIN_SECONDS)
                        stop.wait(AGAIN_SECONDS)
            finally:
                lock.release()

        thread = threading.Thread(target=follow, name=f"gistream-feed-{entry.name}", daemon=True)
        self._running[entry.number] = _Running(thread, stop)
        self._metrics.watch(
            "gistream_feed_last_success_timestamp_seconds",
            lambda: (self._book.progress(entry).succeeded_at or 0) / 1e6,
            feed=entry.name,
        )
        thread.start()

    def _follower(
        self, entry: Entry, settle_seconds: float, on_delivered: Callable[[Delivered], None] = lambda delivered: None
    ) -> Follower:
        connect = partial(foreign_connection, self._settings)
        feed = build(entry, self._fetcher, connect, limits(self._settings), settle_seconds=settle_seconds)
        return Follower(entry, feed, self._book, self._inbox, self._letters, self._metrics, on_delivered)


def check_free(settings: Settings, entries: Collection[Entry]) -> None:
    """Raises WriterBusy where all of these feeds are run by other processes."""
    busy: WriterBusy | None = None
    for entry in entries:
        lock = lock_of(settings, entry)
        try:
            lock.acquire(take_over=False)
        except WriterBusy as error:
            busy = error
        else:
            lock.release()
            return
    if busy is not None:
        raise busy
