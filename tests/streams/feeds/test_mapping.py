"""Where in a foreign record the parts of a document stand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import BadRequest, InvalidEvent
from index.types import DocumentEvent
from streams.feeds.mapping import REST, Fields

RICH = Fields(
    text=("after.summary", "after.body"),
    id="after.number",
    title="after.head",
    version="sequence",
    event_time="after.at",
    metadata=("after.lang", "source.name"),
    deleted=("op", "d"),
)
RECORD: dict[str, Any] = {
    "op": "u",
    "sequence": 7,
    "source": {"name": "crm", "host": "h"},
    "after": {"number": 41, "head": "The Lock", "summary": "Short.", "body": "Long.", "at": "2024-05-31", "lang": "en"},
}


def event(fields: Fields, record: object, key: bytes | None = b"k", prefix: str = "") -> DocumentEvent:
    return fields.event(key, json.dumps(record).encode(), "ns", prefix=prefix)


def test_every_part_is_taken_from_its_place() -> None:
    assert event(RICH, RECORD, prefix="crm/") == DocumentEvent(
        namespace="ns",
        id="crm/41",
        version=7,
        title="The Lock",
        text="Short.\n\nLong.",
        metadata={"after.lang": "en", "source.name": "crm"},
        event_time=datetime(2024, 5, 31, tzinfo=UTC),
    )


def test_without_a_mapping_the_key_is_the_id_and_the_rest_metadata() -> None:
    mapped = event(Fields(), {"text": "One.", "lang": "en", "n": 3, "empty": {}})
    assert mapped == DocumentEvent(namespace="ns", id="k", text="One.", metadata={"lang": "en", "n": 3})


def test_the_rest_is_what_no_other_path_reads() -> None:
    fields = Fields(text=("a.text",), id="a.id", title="title", metadata=("b.c", REST))
    record = {"a": {"text": "One.", "id": "x", "more": 1}, "title": "T", "b": {"c": 2}, "d": [3]}
    assert event(fields, record).metadata == {"a": {"more": 1}, "b.c": 2, "d": [3]}
    assert json.dumps(record) == json.dumps(
        {"a": {"text": "One.", "id": "x", "more": 1}, "title": "T", "b": {"c": 2}, "d": [3]}
    )


def test_a_part_that_is_not_there_is_left_out_but_for_the_text_the_id_and_the_version() -> None:
    bare = {"sequence": 1, "after": {"number": "x", "body": "Long.", "head": None, "summary": None}}
    assert event(RICH, bare) == DocumentEvent(namespace="ns", id="x", version=1, text="Long.")
    for path, lacking in (
        ("'sequence'", {"after": {"number": "x", "body": "Long."}}),
        ("'after.number'", {"sequence": 1, "after": {"body": "Long."}}),
        ("'after.summary' or 'after.body'", {"sequence": 1, "after": {"number": "x"}}),
    ):
        with pytest.raises(InvalidEvent, match=f"the record has no field {path}"):
            event(RICH, lacking)


def test_a_tombstone_deletes_the_document_of_its_key() -> None:
    deletion = DocumentEvent(op="delete", namespace="ns", id="crm/k")
    assert Fields().event(b"k", None, "ns", prefix="crm/") == deletion
    assert RICH.event(b"k", None, "ns", prefix="crm/") == deletion
    with pytest.raises(InvalidEvent, match="a record without a key"):
        Fields().event(None, None, "ns")
    with pytest.raises(InvalidEvent, match="not UTF-8 at byte 1"):
        Fields().event(b"a\xff", None, "ns")


@pytest.mark.parametrize(
    ("written", "value", "is_gone"),
    [
        ("d", "d", True),
        ("d", "D", False),
        ("true", True, True),
        ("true", "true", True),
        ("true", 1, False),
        ("1", True, False),
        ("1", 1, True),
        ("null", None, True),
        ("d", {"d": 1}, False),
    ],
)
def test_a_record_may_say_that_its_document_is_gone(written: str, value: object, is_gone: bool) -> None:
    mapped = event(Fields(deleted=("state.gone", written)), {"text": "One.", "state": {"gone": value}})
    assert (mapped.op == "delete") == is_gone
    assert mapped.id == "k"
    if is_gone:
        assert (mapped.text, mapped.metadata) == ("", {})


def test_a_deletion_keeps_its_version_and_needs_no_text() -> None:
    gone = {"op": "d", "sequence": 9, "after": {"number": 41}}
    assert event(RICH, gone) == DocumentEvent(op="delete", namespace="ns", id="41", version=9)
    assert event(Fields(deleted=("gone", "true")), {"text": "One."}).op == "upsert", "what is not said is not so"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"[1]", "no JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"text": 3}', "field 'text' of the record is no text"),
        (b'{"text": ["x"]}', "field 'text' of the record is no text"),
        (b'{"text": "\\ud800"}', "field 'text': is not valid Unicode"),
        (b'{"text": "x", "n": NaN}', "nan is no number of JSON"),
        (b'{"text": "x", "at": 1717171717}', "'event_time': not a date"),
        (b'{"text": "x", "id": true}', "field 'id' of the record is no id"),
        (b'{"text": "x", "id": 1.5}', "field 'id' of the record is no id"),
        (b'{"text": "x", "id": ""}', "field 'id'"),
        (b'{"text": "x", "version": "3"}', "field 'version'"),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(value: bytes, reason: str) -> None:
    text = value.decode(errors="replace")
    fields = Fields(
        id="id" if '"id"' in text else None,
        version="version" if '"version"' in text else None,
        event_time="at",
    )
    with pytest.raises(InvalidEvent, match=reason.replace(".", r"\.")):
        fields.event(b"k", value, "ns")


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    for fields in ({"id": path}, {"text": ("text", path)}, {"metadata": (path,)}, {"deleted": (path, "x")}):
        with pytest.raises(BadRequest, match="is no path into a record"):
            Fields(**fields)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
)
_PATH = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map(".".join)
_FIELDS = st.builds(
    Fields,
    text=st.lists(_PATH, max_size=2).map(tuple),
    id=st.none() | _PATH,
    title=st.none() | _PATH,
    version=st.none() | _PATH,
    event_time=st.none() | _PATH,
    metadata=st.lists(_PATH | st.just(REST), max_size=2).map(tuple),
    deleted=st.none() | st.tuples(_PATH, st.text(max_size=3)),
)


@given(
    fields=_FIELDS,
    key=st.none() | st.binary(max_size=4),
    value=st.none() | st.binary(max_size=20) | _JSON.map(lambda value: json.dumps(value).encode()),
)
def test_any_record_is_an_event_or_a_reason(fields: Fields, key: bytes | None, value: bytes | None) -> None:
    try:
        mapped = fields.event(key, value, "ns")
    except InvalidEvent as error:
        assert error.message and "\n" not in error.message
    else:
        assert mapped.namespace == "ns" and mapped.id
