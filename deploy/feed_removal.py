"""Removing a feed, with or without its documents, while it may be running somewhere."""

from __future__ import annotations

import time
from typing import Final

from index.errors import WriterBusy
from index.types import DocumentEvent, Inbox
from streams.feeds.book import Book, Entry

from .feeding import lock_of
from .settings import Settings

_BATCH: Final = 1000
_LOOK_SECONDS: Final = 0.05


def removed(settings: Settings, book: Book, entry: Entry, inbox: Inbox | None, *, wait_seconds: float) -> list[str]:
    """Forget `entry`; delete its documents where there is an `inbox`, and return the tokens of that.

    Whoever runs the feed lets it go first, so that nothing of it comes after the deletions. Killed in between, it is
    half removed, which a second call completes. Raises WriterBusy where it is not let go within `wait_seconds`.
    """
    book.begin_removal(entry)
    lock = lock_of(settings, entry)
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            lock.acquire(take_over=False)
            break
        except WriterBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_SECONDS)
    try:
        tokens: list[str] = []
        if inbox is not None:
            ids = sorted(book.memory(entry).items)
            for start in range(0, len(ids), _BATCH):
                some = ids[start : start + _BATCH]
                tokens += inbox.append([DocumentEvent(op="delete", namespace=entry.namespace, id=id) for id in some])
        book.remove(entry)
        lock.path.unlink(missing_ok=True)
        return tokens
    finally:
        lock.release()
