"""Events on the wire: what is written is read back, and whatever is wrong is named."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.errors import InvalidEvent
from index.types import DocumentEvent
from streams.events import MAX_METADATA_DEPTH, Limits, canonical_metadata, decode, encode

SECRET = "the quick brown fox"

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
events = st.builds(
    DocumentEvent,
    op=st.sampled_from(["upsert", "delete"]),
    namespace=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True),
    id=texts.filter(lambda name: 1 <= len(name.encode()) <= 512),
    version=st.none() | st.integers(0, 2**63 - 1),
    title=texts,
    text=texts,
    metadata=st.dictionaries(texts, values, max_size=4),
    event_time=st.none() | st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),
)


def line(**fields: Any) -> bytes:
    return json.dumps({"namespace": "news", "id": "42", "text": SECRET} | fields).encode()


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


@given(events)
def test_decode_inverts_encode(event: DocumentEvent) -> None:
    assert decode(encode(event)) == event
    assert encode(decode(encode(event))) == encode(event)


@given(st.dictionaries(texts, values, max_size=5))
def test_equal_metadata_is_equal_text(metadata: dict[str, Any]) -> None:
    backwards = dict(reversed(metadata.items()))
    assert canonical_metadata(metadata) == canonical_metadata(backwards)
    assert json.loads(canonical_metadata(metadata)) == metadata


def test_an_identifier_and_a_text_are_enough() -> None:
    event = decode('{"id": "a/1", "text": "Hello."}', default_namespace="notes")
    assert event == DocumentEvent(namespace="notes", id="a/1", text="Hello.")
    assert event.op == "upsert"
    assert decode(line(), default_namespace="notes").namespace == "news"


def test_a_time_keeps_its_moment() -> None:
    zone = timezone(timedelta(hours=2))
    event = decode(line(event_time=datetime(2024, 5, 31, 20, tzinfo=zone).isoformat()))
    assert event.event_time == datetime(2024, 5, 31, 18, tzinfo=UTC)
    assert decode(line(event_time="2024-05-31")).event_time == datetime(2024, 5, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b'{"id": "42"', "not JSON"),
        (b"[" * 70_000, "nested too deeply"),
        (b"[1, 2]", "a JSON array"),
        (b'"text"', "a JSON string"),
        (b"7", "a JSON number"),
        (b"null", "a JSON null"),
        (b"9" * 5000, "not JSON"),
        (b'{"namespace": "news", "id": "42", "text": "a", "text": "b"}', "the key 'text' stands there twice"),
        (b'{"namespace": "news", "id": "42", "metadata": {"a": 1, "a": 2}}', "the key 'a' stands there twice"),
        (b'{"namespace": "news", "id": "42", "text": "\\ud800"}', "field 'text'"),
        (b'{"namespace": "news", "id": "42", "metadata": {"a": "\\ud800"}}', "field 'metadata.a': not valid Unicode"),
        (b'{"namespace": "news", "id": "42", "metadata": {"\\ud800": 1}}', "the key '\\ud800' is no valid text"),
        (b'{"namespace": "news", "id": "42", "metadata": {"a": NaN}}', "field 'metadata.a': nan"),
        (b'{"namespace": "news", "id": "42", "metadata": {"a": [1e999]}}', "field 'metadata.a.0': inf"),
        (line(metadata={"a": 2**63}), "field 'metadata.a': an integer beyond 64 bits"),
        (line(metadata=[1]), "field 'metadata'"),
        (line(metadata={"a": nested(MAX_METADATA_DEPTH)}), "nested deeper than 16"),
        (line(metadata={"a": "x" * 1000}), "field 'metadata': 1008 bytes, the limit is 500"),
        (line(text="x" * 2000), "title and text have 2000 bytes, the limit is 1500"),
        (line(text="x" * 100_000), "within the limits none has more"),
        (line(text=7), "field 'text'"),
        (line(text=None), "field 'text'"),
        (line(v=2), "field 'v': 2 is no known version"),
        (line(v=True), "field 'v': True is no known version"),
        (line(op="replace"), "field 'op'"),
        (line(namespace="News"), "field 'namespace': a namespace is"),
        (line(namespace=None), "field 'namespace'"),
        (b'{"id": "42"}', "field 'namespace'"),
        (b'{"namespace": "news"}', "a document without id: field 'id'"),
        (line(id=""), "field 'id'"),
        (line(id="é" * 257), "field 'id'"),
        (line(version="1"), "field 'version'"),
        (line(version=-1), "field 'version'"),
        (line(version=True), "field 'version'"),
        (line(content="?"), "field 'content'"),
        (line(event_time=1717178400), "field 'event_time': not a date"),
        (line(event_time="1717178400"), "field 'event_time': not a date"),
        (line(event_time="yesterday"), "field 'event_time': not a date"),
        (line(event_time="0000-01-01T00:00:00Z"), "field 'event_time'"),
        (line(event_time="2024-02-30"), "field 'event_time'"),
        (line(event_time="0001-01-01T00:00:00+14:00"), "field 'event_time': outside the years"),
        (line(event_time="9999-12-31T23:59:59-14:00"), "field 'event_time': outside the years"),
    ],
)
def test_what_is_wrong_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        decode(data, Limits(document_bytes=1500, metadata_bytes=500))
    message = str(caught.value)
    assert reason in message
    assert SECRET not in message
    assert "\n" not in message
    assert len(message) < 400


def test_a_reason_names_the_document_in_one_short_line() -> None:
    with pytest.raises(InvalidEvent, match=r"document '42' of namespace 'news': field 'op': "):
        decode(line(op="replace"))
    with pytest.raises(InvalidEvent, match=r"document 'a\\nx+… of namespace") as caught:
        decode(line(id="a\n" + "x" * 5000))
    assert len(str(caught.value)) < 400


@given(st.binary() | st.text() | st.dictionaries(st.text(), values).map(json.dumps))
@example('{"id": {}, "namespace": []}')
@example('{"id": "1", "namespace": "n", "metadata": {"a": {"b": {}}}, "event_time": {}}')
def test_anything_is_an_event_or_an_invalid_event(data: bytes | str) -> None:
    try:
        event = decode(data, default_namespace="notes")
    except InvalidEvent as error:
        assert "\n" not in str(error)
    else:
        assert decode(encode(event)) == event


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50), st.booleans())
def test_no_event_within_the_limits_is_larger_than_event_bytes(text: str, ascii_only: bool) -> None:
    limits = Limits(document_bytes=len(text.encode()), metadata_bytes=2)
    data = json.dumps({"namespace": "news", "id": "42", "text": text}, ensure_ascii=ascii_only)
    assert decode(data, limits).text == text
