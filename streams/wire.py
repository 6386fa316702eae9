"""Events as records of Kafka, and back: what stands in `documents`, and what comes out of `understood`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kafka.partitioner.default import murmur2

from index.errors import BadRequest, InvalidEvent
from index.token import Token
from index.types import Accepted, DocumentEvent

from .connection import DOCUMENTS
from .events import DEFAULT_LIMITS, Limits, decode, encode, validated

ORIGIN: Final = "origin"
"""Header of an understood record: the token of its event in `documents`."""
STAMP: Final = "stamp"
"""When the event was accepted, in microseconds since 1970."""
VERSION: Final = "version"
"""What orders the event among those of its document, where it has no version of its own."""

_ENVELOPE_BYTES: Final = 2**16
"""Room for keys, headers and reasons."""
_MOST_DOCUMENT_BYTES: Final = 90_000_000
"""Brokers and clients take no request of more than 100 MB unless they are told to."""


class Record(NamedTuple):
    """One record of a topic, whichever client fetched it."""

    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    """None is a tombstone; an empty value is not."""
    headers: Mapping[str, bytes] = MappingProxyType({})


def document_record(event: DocumentEvent) -> tuple[bytes, bytes | None]:
    """Key and value of an event in `documents`.

    A delete without a version is a tombstone, so that compaction can forget the document altogether.
    """
    key = f"{event.namespace}/{event.id}".encode()
    return key, None if event.op == "delete" and event.version is None else encode(event)


def document_event(key: bytes | None, value: bytes | None, limits: Limits = DEFAULT_LIMITS) -> DocumentEvent:
    """The event of a record of `documents`. Raises InvalidEvent, which is for the dead letters."""
    if value is not None:
        return decode(value, limits)
    try:
        namespace, slash, id = (key or b"").decode().partition("/")
    except UnicodeDecodeError as error:
        raise InvalidEvent(f"a tombstone whose key is not UTF-8 at byte {error.start}", hint=_KEY) from None
    if not slash:
        raise InvalidEvent(f"a tombstone whose key is {namespace[:80]!r}", hint=_KEY)
    return validated({"op": "delete", "namespace": namespace, "id": id}, limits)


def most_bytes(kind: str, limits: Limits = DEFAULT_LIMITS) -> int:
    """The largest record of a topic of ours: a document's JSON, and where others follow it, what they say of it."""
    document = min(2 * (limits.document_bytes + limits.metadata_bytes), _MOST_DOCUMENT_BYTES) + _ENVELOPE_BYTES
    return document if kind == DOCUMENTS else document + _ENVELOPE_BYTES


def key_partition(key: bytes, partitions: int) -> int:
    """The partition that holds all records of a key, as any Kafka client would place them."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def namespace_partition(namespace: str, partitions: int) -> int:
    """The partition of `understood` that holds all events of a namespace."""
    return key_partition(namespace.encode(), partitions)


def understood_headers(origin: Token, stamp: int, version: int) -> list[tuple[str, bytes]]:
    """What goes with an event from `documents` to `understood`, beside its key and value as they were."""
    return [(ORIGIN, str(origin).encode()), (STAMP, b"%d" % stamp), (VERSION, b"%d" % version)]


def understood_event(record: Record, source: str, limits: Limits = DEFAULT_LIMITS) -> Accepted:
    """The event of a record of `understood`, whose partition is `source`.

    Raises InvalidEvent for a record that no worker of ours has written.
    """
    event = document_event(record.key, record.value, limits)
    try:
        origin = Token.parse(record.headers[ORIGIN].decode())
        stamp, version = _number(record.headers[STAMP]), _number(record.headers[VERSION])
    except (KeyError, ValueError, BadRequest) as error:
        reason = f"a record of {source} without the headers of an understood event: {error!r}"
        raise InvalidEvent(reason, hint="send events to the topic documents") from None
    if event.version is None:
        event = event.model_copy(update={"version": version})
    return Accepted(record.offset, stamp, event, {origin.source: origin.position, source: record.offset})


def _number(written: bytes) -> int:
    """A moment or version as `b"%d"` writes it. Raises ValueError for anything else, and for what no table can hold."""
    number = int(written)
    if not 0 <= number < 2**63 or written != b"%d" % number:
        raise ValueError(f"{written[:40]!r} is none of our numbers")
    return number


_KEY: Final = "the key of a tombstone is NAMESPACE/ID"
