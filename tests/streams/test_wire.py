"""Events as records, and back: what is written is what is read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidEvent
from index.token import Token
from index.types import DocumentEvent
from streams.connection import DEAD_LETTERS, DOCUMENTS, UNDERSTOOD
from streams.events import Limits
from streams.wire import (
    Record,
    document_event,
    document_record,
    key_partition,
    most_bytes,
    namespace_partition,
    understood_event,
    understood_headers,
)

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
versions = st.none() | st.integers(0, 2**63 - 1)
upserts = st.builds(
    DocumentEvent, namespace=st.sampled_from(["notes", "a.b_c-d", "0"]), id=ids, version=versions, text=ids, title=ids
)
deletes = st.builds(DocumentEvent, op=st.just("delete"), namespace=st.just("notes"), id=ids, version=versions)


@given(upserts | deletes)
def test_a_record_says_the_event(event: DocumentEvent) -> None:
    key, value = document_record(event)
    assert key == f"{event.namespace}/{event.id}".encode()
    assert (value is None) == (event.op == "delete" and event.version is None)
    assert document_event(key, value) == event


@given(upserts | deletes, st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**50), st.integers(0, 2**62))
def test_an_understood_record_says_where_its_event_came_from(
    event: DocumentEvent, offset: int, origin: int, stamp: int, version: int
) -> None:
    headers = understood_headers(Token("documents~2-7", origin), stamp, version)
    accepted = understood_event(Record(3, offset, 0, *document_record(event), dict(headers)), "understood-3")
    assert (accepted.position, accepted.stamp) == (offset, stamp)
    assert list(accepted.places.items()) == [("documents~2-7", origin), ("understood-3", offset)]
    assert accepted.event.version == (version if event.version is None else event.version)
    assert accepted.event.model_copy(update={"version": event.version}) == event


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, None, "tombstone whose key is ''"),
        (b"notes", None, "tombstone whose key is 'notes'.*NAMESPACE/ID"),
        (b"\xff/a", None, "not UTF-8 at byte 0"),
        (b"No/a", None, "document 'a' of namespace 'No'"),
        (b"notes/", None, "a document id has 1 to"),
        (b"notes/a", b"", "not JSON"),
        (b"notes/a", b"[]", "a JSON array"),
    ],
)
def test_what_is_no_event_is_said_so(key: bytes | None, value: bytes | None, reason: str) -> None:
    with pytest.raises(InvalidEvent, match=reason):
        document_event(key, value)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": b"documents-0:1", "stamp": b"1"},
        {"origin": b"documents", "stamp": b"1", "version": b"1"},
        {"origin": b"\xff", "stamp": b"1", "version": b"1"},
        {"origin": b"documents-0:1", "stamp": b"soon", "version": b"1"},
        {"origin": b"documents-0:1", "stamp": b"-1", "version": b"1"},
        {"origin": b"documents-0:1", "stamp": b"1", "version": b"9223372036854775808"},
        {"origin": b"documents-0:1", "stamp": b"1_0", "version": b"1"},
    ],
)
def test_headers_of_others_are_refused(headers: dict[str, bytes]) -> None:
    with pytest.raises(InvalidEvent, match=r"understood-0 without the headers .*send events to the topic documents"):
        understood_event(Record(0, 0, 0, b"notes/a", None, headers), "understood-0")


def test_metadata_that_is_no_json_is_refused() -> None:
    odd: Any = {"x": {1, 2}}
    with pytest.raises(InvalidEvent, match="document notes/a cannot be written as JSON"):
        document_record(DocumentEvent(namespace="notes", id="a", metadata=odd))


def test_partitions_are_those_of_every_kafka_client() -> None:
    # Values of Kafka's own test of its murmur2.
    assert key_partition(b"21", 2**31) == -973932308 & 0x7FFFFFFF
    assert key_partition(b"foobar", 2**31) == -790332482 & 0x7FFFFFFF
    assert namespace_partition("foobar", 12) == (-790332482 & 0x7FFFFFFF) % 12


@given(st.integers(1, 2**30), st.integers(2, 2**24))
def test_what_follows_a_document_is_larger_than_it(document: int, metadata: int) -> None:
    limits = Limits(document, metadata)
    assert most_bytes(UNDERSTOOD, limits) == most_bytes(DEAD_LETTERS, limits) == most_bytes(DOCUMENTS, limits) + 2**16
    assert most_bytes(DEAD_LETTERS, limits) < 100_000_000
