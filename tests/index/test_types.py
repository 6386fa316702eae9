"""Tests of the words: what a document event may be, and moments as integers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from index.clock import EPOCH, from_microseconds, to_microseconds
from index.errors import GistreamError, ModelUnavailable, NotYet, SnapshotGone, StoreError
from index.types import DocumentEvent


def event(**fields: Any) -> DocumentEvent:
    return DocumentEvent.model_validate({"namespace": "notes", "id": "d1", **fields})


@pytest.mark.parametrize("name", ["a", "0", "a.b_c-d", "9" * 63])
def test_names_of_namespaces(name: str) -> None:
    assert event(namespace=name).namespace == name


@pytest.mark.parametrize("name", ["", "A", "-a", ".a", "a/b", "a b", "a\n", "ä", "a" * 64])
def test_what_is_no_namespace(name: str) -> None:
    with pytest.raises(ValidationError, match="namespace"):
        event(namespace=name)


@pytest.mark.parametrize(("id", "fits"), [("", False), ("é" * 256, True), ("é" * 257, False), ("\ud800", False)])
def test_an_id_has_1_to_512_bytes(id: str, fits: bool) -> None:
    if fits:
        assert event(id=id).id == id
    else:
        with pytest.raises(ValidationError):
            event(id=id)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "a lone \ud800"},
        {"title": "\udfff"},
        {"version": -1},
        {"version": 2**63},
        {"version": True},
        {"version": "7"},
        {"op": "insert"},
        {"unknown": 1},
        {"v": 2},
    ],
)
def test_what_breaks_a_rule_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        event(**fields)


def test_an_event_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        event().text = "other"


def test_times_are_utc() -> None:
    noon = datetime(2024, 5, 31, 12)
    assert event(event_time=noon).event_time == noon.replace(tzinfo=UTC)
    east = noon.replace(tzinfo=timezone(timedelta(hours=5, minutes=30)))
    moved = event(event_time=east).event_time
    assert moved == east and moved is not None and moved.utcoffset() == timedelta(0)


@given(st.datetimes(timezones=st.just(UTC)))
def test_moments_are_exact_and_in_order(moment: datetime) -> None:
    number = to_microseconds(moment)
    assert from_microseconds(number) == moment
    assert (number < 0) == (moment < EPOCH)
    assert from_microseconds(number - 1) < moment if moment > datetime.min.replace(tzinfo=UTC) else True


def test_an_error_says_what_to_do_next() -> None:
    error = SnapshotGone("snapshot 3 is gone", hint="ask for a newer one")
    assert str(error) == "snapshot 3 is gone. ask for a newer one"
    assert (error.message, error.hint, error.recoverable) == ("snapshot 3 is gone", "ask for a newer one", False)
    assert str(StoreError("broken")) == "broken"
    assert isinstance(error, StoreError | GistreamError)
    assert ModelUnavailable("x").recoverable and NotYet("x").recoverable
