"""Sessions: which documents are turns of one conversation, and in which order their passages stand there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from . import keys
from .types import Document, Key

_MOST = 10**20


class Turn(NamedTuple):
    """A passage at its place in a session."""

    session: Key
    place: str
    """Turns are in the order of these strings."""
    passage: Key

    @property
    def key(self) -> Key:
        return keys.key("turn", self.text)

    @property
    def text(self) -> str:
        """What the relation TURNS keeps: `read` gives place and passage back."""
        return f"{self.place}\t{self.passage.hex()}"


def turns(document: Document) -> Iterator[Turn]:
    """The turns that a document takes, one for each of its passages; none where it belongs to no session.

    Metadata says which session: `conversation` and `session` together, or `doc_id` where there is neither. Turns are in
    order of event time, then of `order` (a number in the metadata), then of document id, then of the text.
    """
    if not document.passages or document.metadata == "{}":
        return
    metadata: Mapping[str, Any] = json.loads(document.metadata)
    names = [name for name in ("conversation", "session") if name in metadata] or ["doc_id"]
    if names[0] not in metadata:
        return
    session = keys.key("session", *(f"{name}={metadata[name]}" for name in names))
    order = metadata.get("order", 0)
    started = (document.event_time or 0, order if isinstance(order, int | float) else 0)
    digits = [_sortable(number) for number in started]
    for place, passage in enumerate(document.passages):
        yield Turn(session, f"{' '.join(digits)} {document.id.encode().hex()} {place:06d}", passage)


def _sortable(number: float) -> str:
    """A number, to thousandths, as a string that sorts where it does: shifted, so that those below zero come first."""
    return f"{max(-_MOST, min(_MOST, round(number * 1000))) + _MOST:021d}"


def read(texts: Iterable[str]) -> list[tuple[str, Key]]:
    """(place, passage) of texts of the relation TURNS."""
    parts = (text.split("\t") for text in texts)
    return [(place, bytes.fromhex(passage)) for place, passage in parts]
