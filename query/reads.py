"""Addresses that answer: questions, documents, and what there is, each from one snapshot and saying which."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import ValidationError

from index.attributes import Mask
from index.clock import from_microseconds
from index.errors import BadRequest, NotFound
from index.history import When, parse_when, standing
from index.metrics import Metrics
from index.snapshot import Snapshot
from index.token import Token

from . import status
from .bodies import PathId, QuestionBody, described, parsed
from .diff import Diff, diff
from .filters import Filter
from .parts import Parts, PartsOf
from .problems import InvalidFields, kind_of, reasons_of
from .retrieve import MODES, Answer, retrieve
from .schema import AsOf, Namespaces, Rebuilding, RetrieveRequest, Snapshots, Status, StoredDocument
from .waiting import until_fresh, until_visible

MAX_SNAPSHOTS = 1000

router = APIRouter(tags=["reading"])


async def _asked(namespace: str, body: QuestionBody, parts: PartsOf) -> RetrieveRequest:
    """The request, once what it waits for is visible."""
    try:
        request = RetrieveRequest.model_validate(parsed(body))
    except ValidationError as error:
        reasons = reasons_of(error.errors(include_input=False, include_url=False, include_context=False))
        raise InvalidFields("the body is no question as this address takes it", reasons) from None
    waits = request.wait_for is not None or request.max_staleness is not None
    if waits and request.wait_seconds > parts.max_wait:
        hint = f"wait for at most {parts.max_wait:g} s (setting wait_timeout), and ask again"
        raise BadRequest(f"waiting {request.wait_seconds:g} s is too long", hint=hint)
    if request.wait_for is not None:
        await until_visible(parts.readers, namespace, Token.parse(request.wait_for), request.wait_seconds)
    if request.max_staleness is not None:
        most, seconds = request.max_staleness, request.wait_seconds
        await until_fresh(parts.readers, parts.staleness, namespace, most, seconds)
    return request


@router.post("/v1/namespaces/{namespace}/retrieve", openapi_extra=described(RetrieveRequest.model_json_schema()))
def retrieve_passages(namespace: str, asked: Annotated[RetrieveRequest, Depends(_asked)], parts: PartsOf) -> Answer:
    """The passages that answer a question, best first, all of one snapshot: the newest or, with `as_of`, an older one;
    `wait_for` a write to find it there.
    """
    with _measured(parts.metrics, asked.mode), _reading(parts, namespace, asked.as_of) as (snapshot, state):
        return retrieve(
            snapshot,
            parts.embedders(snapshot.manifest.fingerprint.embedder),
            asked.question,
            mode=asked.mode,
            k=asked.k,
            eligible=_eligible(parts.metrics, asked, snapshot),
            with_explanation=asked.explain,
            staleness_seconds=state.staleness_seconds,
        )


@router.get("/v1/namespaces/{namespace}/documents/{id:rest}")
def get_document(namespace: str, id: PathId, parts: PartsOf, as_of: str | None = None) -> StoredDocument:
    """A document as the newest snapshot holds it; `as_of` (number or moment) as an older one does."""
    with _reading(parts, namespace, None if as_of is None else parse_when(as_of)) as (snapshot, state):
        document = snapshot.documents_by_id([id]).get(id)
    if document is None or document.deleted:
        fate = "was deleted from" if document else "is not in"
        hint = "a document sent just now is there once a snapshot has reached its token"
        raise NotFound(f"document {id!r} {fate} namespace {namespace}", hint=hint)
    return StoredDocument(
        **state.model_dump(),
        namespace=namespace,
        id=document.id,
        version=document.version,
        title=document.title,
        text=document.text,
        metadata=json.loads(document.metadata),
        event_time=None if document.event_time is None else from_microseconds(document.event_time),
        accepted_at=from_microseconds(document.accepted_at),
        passages=[key.hex() for key in document.passages],
    )


@router.get("/v1/namespaces/{namespace}/snapshots")
def list_snapshots(
    namespace: str, parts: PartsOf, limit: Annotated[int, Query(ge=1, le=MAX_SNAPSHOTS)] = 100
) -> Snapshots:
    """The newest snapshots of a namespace that can still be read, newest first."""
    with _reading(parts, namespace, None) as (_, state):
        found = status.snapshots(parts.readers.home, namespace, limit)
        return Snapshots(**state.model_dump(), namespace=namespace, snapshots=found)


@router.get("/v1/namespaces/{namespace}/snapshots/diff")
def diff_snapshots(
    namespace: str,
    parts: PartsOf,
    before: str,
    after: str,
    limit: Annotated[int, Query(ge=0, le=MAX_SNAPSHOTS)] = 100,
) -> Diff:
    """What came, went and changed from one snapshot (number or moment) to another; at most `limit` rows of each kind
    are named.
    """
    return diff(parts.readers.home, namespace, parse_when(before), parse_when(after), limit)


@router.get("/v1/namespaces")
def list_namespaces(parts: PartsOf) -> Namespaces:
    """The names of all namespaces, sorted."""
    return Namespaces(namespaces=parts.readers.home.names())


@router.get("/v1/status")
def show_status(parts: PartsOf) -> Status:
    """The sizes of every namespace, how many dead letters wait, the feeds, and what is being made anew."""
    return Status(
        namespaces=status.sizes(parts.readers.home),
        dead_letters=parts.dead_letters(),
        feeds=parts.feeds(),
        rebuilding={name: Rebuilding(done=done, documents=of) for name, (done, of) in parts.rebuilding().items()},
    )


def _eligible(metrics: Metrics, filter: Filter, snapshot: Snapshot) -> Mask | None:
    started = time.perf_counter()
    mask = filter.mask(snapshot)
    if mask is not None:
        metrics.observe("gistream_filter_seconds", time.perf_counter() - started)
    return mask


@contextmanager
def _reading(parts: Parts, namespace: str, when: When | None) -> Iterator[tuple[Snapshot, AsOf]]:
    """A snapshot and what it shows; where it is cleaned away while it is read, SnapshotGone says so."""
    snapshot = parts.history.snapshot(namespace, when)
    manifest = snapshot.manifest
    # The log forgets what it no longer needs, so it cannot say this of the past.
    age = parts.staleness(namespace, manifest.positions) if when is None else None
    with standing(snapshot.folder, manifest.number):
        yield (
            snapshot,
            AsOf(
                snapshot=manifest.number,
                watermark=status.moment(manifest.watermark),
                staleness_seconds=None if age is None or math.isinf(age) else age,
            ),
        )


@contextmanager
def _measured(metrics: Metrics, mode: str) -> Iterator[None]:
    """Count and time one question. What is no mode is counted as one: callers must not make series."""
    mode = mode if mode in MODES else "unknown"
    outcome = "ok"
    try:
        with metrics.timed("gistream_query_seconds", mode=mode):
            yield
    except Exception as error:
        outcome = kind_of(error)
        raise
    finally:
        metrics.count("gistream_queries_total", mode=mode, outcome=outcome)
