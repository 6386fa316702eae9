"""Addresses that accept documents: every write is durable when it is answered, and visible soon after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Query

from index.errors import BadRequest, InvalidEvent
from index.types import DocumentEvent, Inbox

from .bodies import PathId, WriteBody, described, event_schema, parsed
from .parts import Parts, PartsOf
from .problems import InvalidFields
from .schema import BatchWritten, Written

router = APIRouter(tags=["documents"])

_ONE = event_schema("v", "op", "namespace", "id")
_MANY = {"type": "array", "minItems": 1, "items": event_schema("v", "namespace")}


@router.put("/v1/namespaces/{namespace}/documents/{id:rest}", status_code=202, openapi_extra=described(_ONE))
def put_document(namespace: str, id: PathId, body: WriteBody, parts: PartsOf) -> Written:
    """Store a new version of a document. The id may hold slashes; the namespace is made by its first document."""
    fields = parsed(body)
    if not isinstance(fields, dict):
        raise BadRequest("the body is no JSON object", hint="send {title, text, metadata, event_time, version}")
    return _accept(parts, _event(parts, fields, {"op": "upsert", "namespace": namespace, "id": id}))


@router.delete("/v1/namespaces/{namespace}/documents/{id:rest}", status_code=202)
def delete_document(namespace: str, id: PathId, parts: PartsOf, version: int | None = Query(None)) -> Written:
    """Delete a document, whether it is there or not: an older version of it that comes late stays deleted too."""
    return _accept(parts, _event(parts, {"version": version}, {"op": "delete", "namespace": namespace, "id": id}))


@router.post("/v1/namespaces/{namespace}/documents", status_code=202, openapi_extra=described(_MANY))
def post_documents(namespace: str, body: WriteBody, parts: PartsOf) -> BatchWritten:
    """Store and delete (`"op": "delete"`) many documents in their order: all of them, or none where one is invalid."""
    inbox = parts.accepting()
    items = parsed(body)
    if not isinstance(items, list) or not items:
        raise BadRequest("the body is no list of documents", hint='send a JSON array like [{"id": "a", "text": "…"}]')
    events, reasons = [], []
    for index, item in enumerate(items):
        try:
            if not isinstance(item, dict):
                raise InvalidEvent("not an event: no JSON object")
            events.append(_event(parts, item, {"namespace": namespace}))
        except InvalidEvent as error:
            id = item.get("id") if isinstance(item, dict) else None
            reasons.append({"index": index, "id": id if isinstance(id, str) else None, "reason": error.message})
    if reasons:
        summary = f"{len(reasons)} of {len(items)} documents are invalid, and none was accepted"
        raise InvalidFields(
            summary, reasons, hint="repair or leave out those that `errors` names, and send the rest again"
        )
    tokens = _append(parts, inbox, events)
    return BatchWritten(tokens=tokens, token=tokens[-1])


def _accept(parts: Parts, event: DocumentEvent) -> Written:
    [token] = _append(parts, parts.accepting(), [event])
    return Written(token=token)


def _append(parts: Parts, inbox: Inbox, events: Sequence[DocumentEvent]) -> list[str]:
    tokens = inbox.append(events)
    for op, count in Counter(event.op for event in events).items():
        parts.metrics.count("gistream_events_accepted_total", count, op=op)
    return tokens


def _event(parts: Parts, fields: dict[str, Any], address: dict[str, str]) -> DocumentEvent:
    """The event of a body and the address it was sent to, which may repeat each other but not disagree."""
    for name, value in address.items():
        if fields.get(name, value) != value:
            raise InvalidEvent(f"field {name!r} of the body is not what the address says", hint="leave it out")
    return parts.decode({**fields, **address})
