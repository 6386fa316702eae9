"""Requests and answers of the service: the models that its OpenAPI document shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from index.types import Text

from .limits import DEFAULT_K, DEFAULT_MODE


class AsOf(BaseModel):
    """Which state an answer shows."""

    snapshot: int
    """Number of the snapshot that the whole answer comes from."""
    watermark: datetime | None
    """When the newest event that it reflects was accepted; null before the first."""
    staleness_seconds: float | None
    """Age of the oldest accepted event that it does not reflect; 0 where there is none, null where that is unknown."""


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


class RetrieveRequest(BaseModel):
    """A question and how to answer it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    question: Text
    mode: str = DEFAULT_MODE
    """How the index is read."""
    k: int = DEFAULT_K
    """Passages wanted."""
    wait_for: str | None = None
    """The token of a write to this namespace that the answer must reflect."""
    wait_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    """How long to wait for it before the answer is a problem with status 504."""
    explain: bool = False
    """Show the seeds, the activated entities and the facts that led to each passage."""


class Sizes(BaseModel):
    """What is in a namespace; tombstones of deleted documents do not count."""

    documents: int
    passages: int
    entities: int
    facts: int
    snapshot: int


class Status(BaseModel):
    """Sizes of every namespace, and the letters that wait for somebody."""

    namespaces: Mapping[str, Sizes]
    dead_letters: int | None
    """Null where this service only reads."""


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
