"""How the feeds fare, as their book tells it."""

from __future__ import annotations

from typing import Any

from .assembly import book_path, open_book
from .settings import Settings
from .show import when


def statuses(settings: Settings) -> dict[str, dict[str, Any]]:
    """By name what every feed is and how it fares; nothing is made where no feed was ever added."""
    if not book_path(settings).exists():
        return {}
    found = {}
    with open_book(settings) as book:
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
