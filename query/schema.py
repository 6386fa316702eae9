"""Requests and answers of the service: the models that its OpenAPI document shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from index.errors import BadRequest
from index.history import parse_when
from index.types import Text

from .filters import Filter
from .limits import DEFAULT_K, DEFAULT_MODE


class AsOf(BaseModel):
    """Which state an answer shows."""

    snapshot: int
    """Number of the snapshot that the whole answer comes from."""
    watermark: datetime | None
    """When the newest event that it reflects was accepted; null before the first."""
    staleness_seconds: float | None
    """Age of the oldest accepted event that it does not reflect; 0 where there is none, null where that is unknown, as
    for a snapshot that was asked for by `as_of`.
    """


class StoredDocument(AsOf):
    """A document as its newest accepted version left it."""

    namespace: str
    id: str
    version: int
    title: str
    text: str
    metadata: dict[str, Any]
    event_time: datetime | None
    accepted_at: datetime
    passages: list[str]
    """Keys of its passages in reading order, as hexadecimal digits."""


class Written(BaseModel):
    """A write that is durable, and visible once a snapshot has reached the token."""

    token: str


class BatchWritten(Written):
    """A batch that is durable; `token` is the last of `tokens`, which are in the order of the batch."""

    tokens: list[str]


class Refusal(BaseModel):
    """An item of a pushed body that is no document."""

    place: str
    reason: str


class PushWritten(BaseModel):
    """A pushed body that is durable."""

    token: str
    """Of its last document."""
    ids: list[str]
    """Of its documents, in their order."""
    refused: list[Refusal]
    """What is in the dead letters instead."""


def _when(value: object) -> object:
    try:
        return parse_when(value) if isinstance(value, str) else value
    except BadRequest as error:
        raise ValueError(f"{error.message}: {error.hint}") from None


class RetrieveRequest(Filter):
    """A question and how to answer it."""

    question: Text
    mode: str = DEFAULT_MODE
    """How the index is read."""
    k: int = DEFAULT_K
    """Passages wanted."""
    as_of: Annotated[Annotated[int, Field(lt=2**63)] | datetime | None, BeforeValidator(_when)] = None
    """Answer from an older snapshot: its number, or a moment for the newest one committed until then."""
    wait_for: str | None = None
    """The token of a write to this namespace that the answer must reflect."""
    max_staleness: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Seconds: the answer must reflect everything that was accepted so long before the question came. Where it does not
    in time, the answer is a problem with status 503.
    """
    wait_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    """How long to wait for a write, or for what is too stale, before the answer is a problem (status 504 for a write).
    """
    explain: bool = False
    """Show the seeds, the activated entities and the facts that led to each passage."""

    @model_validator(mode="after")
    def _of_one_time(self) -> Self:
        if self.as_of is not None and (self.wait_for is not None or self.max_staleness is not None):
            raise ValueError("as_of asks what was: it cannot wait for what comes (wait_for, max_staleness)")
        return self


class Sizes(BaseModel):
    """What is in a namespace; tombstones of deleted documents do not count."""

    documents: int
    passages: int
    entities: int
    facts: int
    snapshot: int


class Rebuilding(BaseModel):
    """How far the rebuild of a namespace has got; its former index answers meanwhile."""

    done: int
    documents: int


class Status(BaseModel):
    """Sizes of every namespace, and the letters that wait for somebody."""

    namespaces: Mapping[str, Sizes]
    dead_letters: int | None
    """Null where this service only reads."""
    feeds: Mapping[str, Mapping[str, Any]]
    """What every feed that was added has brought, when it last succeeded, and what is wrong with it."""
    rebuilding: Mapping[str, Rebuilding] = {}
    """Namespaces that are being made anew since other settings made them."""


class Namespaces(BaseModel):
    namespaces: list[str]


class SnapshotEntry(Sizes):
    """One snapshot that can still be read."""

    time: datetime
    cause: str
    epoch: int
    positions: Mapping[str, int]
    watermark: datetime | None


class Snapshots(AsOf):
    """The snapshots of a namespace, newest first."""

    namespace: str
    snapshots: list[SnapshotEntry]


class Health(BaseModel):
    status: str
