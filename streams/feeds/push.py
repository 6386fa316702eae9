"""Documents that somebody sends: a body of any readable media type becomes events without knowing what an event is."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

from index.errors import InvalidEvent
from index.types import DocumentEvent

from ..events import DEFAULT_LIMITS, Limits, validated
from .base import MAX_PAYLOAD, Rejected, Step
from .formats.base import Unreadable
from .formats.loading import MEDIA_TYPES, load

ONE: Final = MEDIA_TYPES
"""Media types of a body that is one document."""
MANY: Final = frozenset({"application/json", "application/x-ndjson", "application/jsonl", "application/x-jsonlines"})
"""Media types of a body of documents: one JSON value or a list of them, or one JSON value a line."""
SOURCE: Final = "push"
"""What the source is called in dead letters."""

_FIELDS: Final = frozenset(DocumentEvent.model_fields)


def document(
    body: bytes,
    media_type: str,
    namespace: str,
    *,
    id: str = "",
    title: str = "",
    charset: str = "",
    limits: Limits = DEFAULT_LIMITS,
) -> DocumentEvent:
    """The event of a body of one of the types ONE.

    Without `id` the body's own digest is the id, so that to send it twice makes one document. Raises InvalidEvent.
    """
    id = id or _digest(body)
    try:
        page = load(body, media_type, limits, charset)
    except Unreadable as error:
        raise InvalidEvent(f"document {id[:200]!r} of namespace {namespace!r}: {error}") from None
    fields = {"namespace": namespace, "id": id, "title": title or page.title, "text": page.text}
    return validated(fields, limits)


def documents(body: bytes, media_type: str, namespace: str, limits: Limits = DEFAULT_LIMITS) -> Iterator[Step]:
    """One step for each JSON value in a body of one of the types MANY.

    A text is a document, and an object with a `text` (or with `op` "delete" and an `id`): fields that no event has
    are metadata. Where there is no `id`, the value's digest is. A value that is none of that is Rejected.
    """
    for place, payload in _values(body, media_type):
        try:
            value = json.loads(payload)
            yield Step((_event(value, payload, namespace, limits),))
        except (InvalidEvent, RecursionError, ValueError) as error:
            reason = str(error) if isinstance(error, InvalidEvent) else f"not JSON: {error}"
            yield Step(rejected=(Rejected(SOURCE, place, reason, payload[:MAX_PAYLOAD]),))


def _values(body: bytes, media_type: str) -> Iterator[tuple[str, bytes]]:
    if media_type != "application/json":
        for number, line in enumerate(io.BytesIO(body), 1):
            if line.strip():
                yield f"line {number}", line.strip()
        return
    try:
        found = json.loads(body)
    except (RecursionError, ValueError):
        yield "the body", body
        return
    if not isinstance(found, list):
        yield "the body", body.strip()
        return
    for number, value in enumerate(found):
        yield f"item {number}", json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")


def _event(value: Any, payload: bytes, namespace: str, limits: Limits) -> DocumentEvent:
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict) or not ("text" in value or value.get("op") == "delete"):
        raise InvalidEvent("not a document", hint="send a text, or an object that has one as its field text")
    fields = {name: member for name, member in value.items() if name in _FIELDS}
    others = {name: member for name, member in value.items() if name not in _FIELDS}
    if others:
        known = fields.get("metadata", {})
        # Whatever is wrong with metadata that is no object is told by the check that follows.
        fields["metadata"] = others | known if isinstance(known, dict) else known
    if fields.setdefault("namespace", namespace) != namespace:
        raise InvalidEvent("field 'namespace' is not what the address says", hint="leave it out")
    fields.setdefault("id", _digest(payload))
    return validated(fields, limits)


def _digest(body: bytes) -> str:
    return f"push/{blake2b(body, digest_size=16).hexdigest()}"
