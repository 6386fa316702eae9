"""Whatever comes as a record of `documents` is an event or refused with a reason; nothing else is ever raised."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.errors import InvalidEvent
from index.types import DocumentEvent
from streams.connection import DOCUMENTS
from streams.events import encode
from streams.producer import Outgoing
from streams.wire import document_event, most_bytes

from .poison import LIMITS, Poison, corpus

CORPUS = sorted(corpus())
REASON_MOST = 500
"""Characters that a reason may have: a letter of 40,000 would tell nobody anything."""


def test_there_are_kinds_enough_and_all_of_them_can_be_sent() -> None:
    assert len({poison.kind for poison in CORPUS}) == len(CORPUS) >= 200
    assert len({(poison.key, poison.value) for poison in CORPUS}) == len(CORPUS)
    most = most_bytes(DOCUMENTS, LIMITS)
    for kind, key, value, headers in CORPUS:
        assert Outgoing(DOCUMENTS, None, key, value, headers).size <= most, kind


def test_seeds_change_the_records_and_never_the_kinds() -> None:
    other = corpus(1)
    assert {poison.kind for poison in other} == {poison.kind for poison in CORPUS} and sorted(other) != CORPUS
    assert corpus(1) == other


@pytest.mark.parametrize("poison", CORPUS, ids=lambda poison: str(poison.kind))
def test_every_kind_is_refused_with_a_reason(poison: Poison) -> None:
    with pytest.raises(InvalidEvent) as refused:
        document_event(poison.key, poison.value, LIMITS)
    reason = str(refused.value)
    assert len(reason) <= REASON_MOST and reason.encode() and "\n" not in reason and reason.isprintable(), reason


def is_event_or_refused(key: bytes | None, value: bytes | None) -> None:
    try:
        event = document_event(key, value, LIMITS)
    except InvalidEvent as error:
        assert str(error).encode()
    else:
        assert isinstance(event, DocumentEvent) and document_event(key, encode(event), LIMITS) == event


@given(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=200))
def test_any_bytes(key: bytes | None, value: bytes | None) -> None:
    is_event_or_refused(key, value)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]))
    | st.sampled_from(["2024-05-31", "upsert", "delete", "notes"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["v", "op", "namespace", "id", "version", "title", "text", "metadata", "event_time", "other"]


@given(st.dictionaries(st.sampled_from(FIELDS), anything), st.booleans())
@example({"event_time": "2024-05-31T00:00:00+00:00:00.0000001"}, True)
def test_any_fields(fields: dict[str, object], is_named: bool) -> None:
    named = {"namespace": "notes", "id": "d"} if is_named else {}
    is_event_or_refused(b"notes/d", json.dumps(fields | named).encode())


@given(st.sampled_from(CORPUS), st.integers(0, 2**16), st.binary(max_size=4), st.integers(0, 8))
def test_poison_with_changed_bytes(poison: Poison, at: int, written: bytes, gone: int) -> None:
    value = poison.value or b""
    at = min(at, len(value))
    is_event_or_refused(poison.key, value[:at] + written + value[at + gone :])
    is_event_or_refused(poison.key[:at] + written + poison.key[at + gone :], None)
