"""How the feeds fare, as their book tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .show import when

if TYPE_CHECKING:
    from streams.feeds.book import Book


def statuses(book: Book) -> dict[str, dict[str, Any]]:
    """By name what every feed is and how it fares."""
    found = {}
    for entry in book.entries():
        progress = book.progress(entry)
        found[entry.name] = {
            "kind": entry.kind,
            "source": entry.source,
            "namespace": entry.namespace,
            "options": dict(entry.options),
            "documents": progress.documents,
            "events": progress.events,
            "rejected": progress.rejected,
            "skipped": dict(progress.skipped),
            "succeeded": when(progress.succeeded_at),
            "failed": when(progress.failed_at),
            "error": "it is being removed" if entry.removed else progress.error,
        }
    return found
