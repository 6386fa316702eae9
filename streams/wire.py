"""Events as records of Kafka, and back: what stands in `documents`, and what comes out of `understood`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kafka.partitioner.default import murmur2

from index.errors import InvalidEvent
from index.token import Token
from index.types import Accepted, DocumentEvent

from .events import DEFAULT_LIMITS, Limits, decode, encode, validated

ORIGIN: Final = "origin"
"""Header of an understood record: the token of its event in `documents`."""
STAMP: Final = "stamp"
"""When the event was accepted, in microseconds since 1970."""
VERSION: Final = "version"
"""What orders the event among those of its document, where it has no version of its own."""


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


def namespace_partition(namespace: str, partitions: int) -> int:
    """The partition of `understood` that holds all events of a namespace, as any Kafka client would place that key."""
    return int(murmur2(namespace.encode()) & 0x7FFFFFFF) % partitions


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
        stamp, version = int(record.headers[STAMP]), int(record.headers[VERSION])
    except (KeyError, ValueError) as error:
        reason = f"a record of {source} without the headers of an understood event: {error!r}"
        raise InvalidEvent(reason, hint="send events to the topic documents") from None
    if event.version is None:
        event = event.model_copy(update={"version": version})
    return Accepted(record.offset, stamp, event, {origin.source: origin.position, source: record.offset})


_KEY: Final = "the key of a tombstone is NAMESPACE/ID"
