"""Addresses that take documents as they are: text, a page, a PDF, or JSON of whoever does not know what an event is."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter, Query

from index.errors import BadRequest

from .bodies import PUSHABLE, PathId, PushBody, PushedBody
from .parts import Parts, PartsOf, Pushed
from .problems import InvalidFields
from .schema import PushWritten, Refusal

router = APIRouter(tags=["documents"])

_BODIES: dict[str, Any] = {
    "requestBody": {"required": True, "content": {media_type: {"schema": {}} for media_type in PUSHABLE}}
}
_SINGLE = tuple(media_type for media_type in PUSHABLE if "json" not in media_type)

_Title = Query("", max_length=1000)


@router.post("/v1/namespaces/{namespace}/push", status_code=202, openapi_extra=_BODIES)
def push(namespace: str, body: PushBody, parts: PartsOf, title: str = _Title) -> PushWritten:
    """Store what is sent: text, Markdown, HTML or PDF is one document, JSON one or a list of them, JSON lines many.

    Of JSON, a string is a text; an object has its text in `text`, may have `id`, `title`, `event_time` and `version`,
    and its other fields are metadata. Without an id, equal content is one document. Items that are no documents go to
    the dead letters; where none is, nothing is stored and the answer is a problem.
    """
    return _received(parts, namespace, body, "", title)


@router.post("/v1/namespaces/{namespace}/push/{id:rest}", status_code=202, openapi_extra=_BODIES)
def push_document(namespace: str, id: PathId, body: PushBody, parts: PartsOf, title: str = _Title) -> PushWritten:
    """Store text, Markdown, HTML or PDF as the new version of this document."""
    if body.media_type not in _SINGLE:
        hint = "POST it to the address without an id, or PUT the document"
        raise BadRequest("JSON that is pushed has its ids in itself", hint=hint)
    return _received(parts, namespace, body, id, title)


def _received(parts: Parts, namespace: str, body: PushedBody, id: str, title: str) -> PushWritten:
    received = parts.receiving()(Pushed(namespace, body.media_type, body.charset, body.data, id, title))
    if not received.events:
        reasons = [{"place": place, "reason": reason} for place, reason in received.refused]
        summary = f"none of {len(reasons)} items is a document, and none was stored" if reasons else "the body is empty"
        raise InvalidFields(summary, reasons, hint="repair what `errors` names, and send it again")
    for op, count in Counter(event.op for event in received.events).items():
        parts.metrics.count("gistream_events_accepted_total", count, op=op)
    return PushWritten(
        token=received.tokens[-1],
        ids=[event.id for event in received.events],
        refused=[Refusal(place=place, reason=reason) for place, reason in received.refused],
    )
