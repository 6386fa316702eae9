"""In which session a document's passages are, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.turns import read, turns
from index.types import Document

KEYS = tuple(bytes([number]) * 16 for number in range(3))


def document(id: str = "a", event_time: int | None = None, passages: int = 1, **metadata: Any) -> Document:
    return Document(id, 1, False, "", "x", json.dumps(metadata), event_time, 1, KEYS[:passages])


def place(of: Document) -> str:
    [turn, *_] = turns(of)
    return turn.place


def session(of: Document) -> bytes:
    [turn, *_] = turns(of)
    return turn.session


def test_what_a_relation_keeps_gives_the_turn_back() -> None:
    taken = list(turns(document(session="s", passages=3)))
    assert read(turn.text for turn in taken) == [(turn.place, turn.passage) for turn in taken]
    assert sorted(taken, key=lambda turn: turn.place) == taken
    assert [turn.passage for turn in taken] == list(KEYS)
    assert len({turn.key for turn in taken}) == 3


@pytest.mark.parametrize("metadata", [{}, {"speaker": "Ida"}, {"order": 3}])
def test_what_names_no_session_has_none(metadata: dict[str, Any]) -> None:
    assert list(turns(document(**metadata))) == []


def test_a_session_is_one_of_its_conversation() -> None:
    assert session(document(session=1)) == session(document(id="b", session=1, doc_id="x"))
    assert session(document(session=1)) != session(document(session=1, conversation=2))
    assert session(document(doc_id="x")) != session(document(doc_id="y"))


@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.floats(-1e12, 1e12)), min_size=2, max_size=2))
def test_turns_are_in_order_of_time_and_then_of_order(moments: list[tuple[int, float]]) -> None:
    one, other = [(moment, round(order, 3)) for moment, order in moments]
    places = [place(document(event_time=moment, session="s", order=order)) for moment, order in (one, other)]
    assert (places[0] < places[1]) == (one < other)


@pytest.mark.parametrize("order", ["late", None, [1], 1e300, -1e300])
def test_an_order_that_is_no_place_is_no_error(order: Any) -> None:
    assert place(document(session="s", order=order))
