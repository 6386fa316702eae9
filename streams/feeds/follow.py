"""One feed of the book, followed: looked at, delivered, waited for, and tried again where its source is away."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from threading import Event
from typing import Final

from index.errors import FeedEnded, FeedError, GistreamError
from index.metrics import Metrics
from index.types import Inbox

from ..letter import Letters
from .base import Feed
from .book import Book, Entry
from .deliver import Delivered, Delivery, batches

LONGEST_PAUSE: Final = 300.0
"""Seconds between two tries of a source that is away, unless the source names more."""

_log = logging.getLogger(__name__)


class Follower:
    """Carries one feed into the inbox; what it has to remember is in the book. Fit for use by one thread."""

    def __init__(
        self,
        entry: Entry,
        feed: Feed,
        book: Book,
        inbox: Inbox,
        letters: Letters,
        metrics: Metrics,
        on_delivered: Callable[[Delivered], None] = lambda delivered: None,
    ) -> None:
        self.entry = entry
        self._feed = feed
        self._book = book
        self._metrics = metrics
        self._on_delivered = on_delivered
        self._memory = book.memory(entry)
        self._delivery = Delivery(
            inbox, letters, entry.namespace, self._memory, keep=lambda steps: book.keep(entry, steps)
        )

    def once(self) -> None:
        """Look at the source and deliver all that is new; returns when it is durable, with the success in the book.

        Raises what the feed, the inbox and the book raise; what was delivered before stays so.
        """
        events = rejected = 0
        failure: str | None = None
        try:
            for steps in batches(self._feed.poll(self._memory)):
                delivered = self._delivery.deliver(steps)
                events += len(delivered.events)
                rejected += delivered.rejected
                self._on_delivered(delivered)
        except Exception as error:
            failure = str(error) or type(error).__name__
            self._metrics.count("gistream_feed_failures_total", feed=self.entry.name)
            raise
        finally:
            self._metrics.count("gistream_feed_events_total", events, feed=self.entry.name)
            self._metrics.count("gistream_feed_rejected_total", rejected, feed=self.entry.name)
            self._book.note(self.entry, events=events, rejected=rejected, skipped=self._feed.skipped, error=failure)

    def run(self, stop: Event) -> None:
        """Follow the source until `stop` is set or it has ended; whatever is wrong with it is noted and tried again."""
        failures = 0
        while not stop.is_set():
            try:
                self.once()
            except FeedEnded as error:
                _log.warning("feed %s ended: %s", self.entry.name, error)
                return
            except Exception as error:
                failures += 1
                pause = min(2.0 ** min(failures, 20) * random.uniform(0.5, 1.0), LONGEST_PAUSE)
                if isinstance(error, FeedError) and error.after is not None:
                    pause = error.after
                # An error that nobody foresaw is a defect, and its place has to be known.
                is_defect = not isinstance(error, GistreamError | OSError)
                _log.warning("feed %s, again in %.0f s: %s", self.entry.name, pause, error, exc_info=is_defect or None)
                stop.wait(pause)
            else:
                failures = 0
                self._feed.wait(stop)
