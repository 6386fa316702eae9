"""The words of gistream: plain values that every component speaks, and nothing that acts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Key = bytes
"""A content address: 16 bytes of blake2b (see keys.py). Written as 32 hexadecimal digits in tables and answers."""

NAMESPACE_PATTERN = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
MAX_ID_BYTES = 512


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"is not valid Unicode (lone surrogate at character {error.start}); repair the text at its source"
        ) from None
    return text


def _namespace(name: str) -> str:
    if not NAMESPACE_PATTERN.fullmatch(name):
        raise ValueError("a namespace is 1 to 63 of a-z 0-9 . _ - and starts with a letter or digit")
    return name


def _document_id(name: str) -> str:
    if not 1 <= len(_encodable(name).encode()) <= MAX_ID_BYTES:
        raise ValueError(f"a document id has 1 to {MAX_ID_BYTES} bytes of UTF-8")
    return name


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


Text = Annotated[str, AfterValidator(_encodable)]
NamespaceName = Annotated[str, AfterValidator(_namespace)]
DocumentId = Annotated[str, AfterValidator(_document_id)]


class DocumentEvent(BaseModel):
    """Something that happened to one document: it got a new version, or it went.

    `version` orders the events of one document (an integer of the source); without it the order of acceptance does.
    `event_time` says when the content is true; it filters and sorts and never decides what wins. A time without a
    zone is UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    v: Literal[1] = 1
    op: Literal["upsert", "delete"] = "upsert"
    namespace: NamespaceName
    id: DocumentId
    version: Annotated[int, Field(strict=True, ge=0, lt=2**63)] | None = None
    title: Text = ""
    text: Text = ""
    metadata: dict[str, Any] = Field(default_factory=dict)
    event_time: Annotated[datetime, AfterValidator(_utc)] | None = None


class Accepted(NamedTuple):
    """An event as a log holds it: `position` is its place there, and `stamp` (microseconds) the time of acceptance.

    The local log's stamps increase strictly, so there they order the events of a document without versions.
    """

    position: int
    stamp: int
    event: DocumentEvent
    places: Mapping[str, int] = MappingProxyType({})
    """How far a snapshot that reflects it has got, by source; the first is where the event was accepted."""


class Inbox(Protocol):
    """What accepts events: the SQLite log of the embedded server, or a Kafka producer."""

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        """Store the events durably, in order, all or none; block until they are; return one token per event.

        Raises GistreamError when the events cannot be stored; nothing is acknowledged then.
        """
        ...


@dataclass(frozen=True, slots=True)
class Document:
    """One row of the table `documents`: the newest version, or the text-free tombstone of a deleted document."""

    id: str
    version: int
    deleted: bool
    title: str
    text: str
    metadata: str
    """Canonical JSON (sorted keys, no blanks)."""
    event_time: int | None
    """Microseconds since 1970, UTC; may be negative."""
    accepted_at: int
    """Microseconds since 1970: the stamp of the event that won."""
    passages: tuple[Key, ...]
    """Keys in reading order; the only place that knows it."""


class Triple(NamedTuple):
    """A fact as the extractor wrote it, before normal forms."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What reading one passage gave; a function of its title and text and of the extractor, of nothing else."""

    memory: str = ""
    """CogitoRAG's memory m(p); empty means: the passage is its own memory."""
    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()
    degraded: bool = False
    """True where the model failed and a fallback read the passage; it is tried again later."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One row of the table `passages` without its vector: a piece of one document and all that was read in it."""

    key: Key
    document: str
    title: str
    text: str
    metadata: str
    event_time: int | None
    extraction: Extraction = field(default_factory=Extraction)
    about: str = ""
    """What its document is about: the title, or where there is none the first name of the opening sentence."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One row of the table `entities`: alive while a passage mentions it; `name` is the spelling most passages use."""

    key: Key
    norm: str
    name: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the table `facts`: alive while a passage supports it; `surface` is the spelling most passages use."""

    key: Key
    head: Key
    tail: Key
    norms: tuple[str, str, str]
    surface: str


Role = Literal["text", "fact-question", "passage-question"]
"""What a vector is for: a stored text, or a question put to facts or to passages. Models without roles ignore it."""


class Question(NamedTuple):
    """A question as a mode receives it, already embedded; the two vectors (d,) are the same where the model knows no
    roles.
    """

    text: str
    to_facts: Any
    to_passages: Any
    encode: Callable[[str], Any] | None = None
    """Embeds (d,) a part of the question, in the role of `to_passages`; None: only the whole can be asked."""


Metadata = Mapping[str, Any]
