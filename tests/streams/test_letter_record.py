"""A dead letter is read back from its record as it was, whatever it holds, and fits into its topic."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from streams.letter import DeadLetter
from streams.letter_record import (
    MAX_KEY,
    TEXT_BYTES,
    letter_from,
    letter_key,
    letter_record,
    namespace_of,
    replayed_record,
)
from streams.producer import Outgoing

ROOM = 2**20
short = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
numbers = st.integers(0, 2**63 - 1)
letters = st.builds(
    DeadLetter,
    number=st.just(8),
    at=numbers,
    source=short,
    position=st.none() | numbers,
    namespace=st.none() | short,
    id=st.none() | short,
    step=short,
    reason=short,
    attempts=numbers,
    payload=st.binary(max_size=100),
    key=st.none() | st.binary(max_size=40),
    is_tombstone=st.booleans(),
)


def read(record: Outgoing) -> DeadLetter:
    return letter_from(7, record.headers, record.value or b"")


@given(letters)
def test_a_letter_is_read_back_as_it_was(letter: DeadLetter) -> None:
    assert read(letter_record(b"k", letter, ROOM)) == letter


@given(letters, st.integers(1, 10**9))
def test_a_replayed_letter_keeps_all_but_its_payload(letter: DeadLetter, number: int) -> None:
    waiting = letter_record(b"k", letter, ROOM)
    expected = replace(letter, number=number, payload=b"", replayed="documents-1:5")
    assert read(replayed_record(b"k", waiting.headers, number, "documents-1:5")) == expected
    assert namespace_of(waiting.headers) == letter.namespace


@given(letters, st.binary(min_size=2000, max_size=4000))
def test_what_is_too_large_is_cut_and_says_so(letter: DeadLetter, payload: bytes) -> None:
    whole = replace(letter, payload=payload)
    record = letter_record(b"k", whole, 1800)
    assert record.size <= 1800
    found = read(record)
    assert found == replace(whole, payload=payload[: len(found.payload)], cut_from=len(payload))
    assert len(found.payload) > 500


@given(st.text(st.characters(exclude_categories=[]), min_size=700, max_size=3000))
@example("\ud800" * 400 + "é" * 2000)
def test_texts_are_bounded_and_always_utf_8(text: str) -> None:
    letter = DeadLetter(text, "decode", text, b"", key=b"k" * 2**20, number=8)
    record = letter_record(b"k", letter, ROOM)
    assert record.size < 2 * TEXT_BYTES + MAX_KEY + 1000
    found = read(record)
    shown = text.encode(errors="backslashreplace").decode()
    assert found.reason == found.source and shown.startswith(found.reason)
    assert len(shown.encode()) <= TEXT_BYTES or len(found.reason.encode()) > TEXT_BYTES - 4


names = st.sampled_from(["at", "source", "position", "attempts", "number", "replayed", "cut", "namespace", "other"])


@given(st.lists(st.tuples(names, st.binary(max_size=30) | st.just(b"9" * 5000)), max_size=9), st.binary(max_size=9))
def test_what_a_foreign_program_wrote_is_a_letter_too(headers: list[tuple[str, bytes]], payload: bytes) -> None:
    assert letter_from(7, headers, payload).payload == payload


def test_a_letter_is_the_same_where_its_event_stood_at_the_same_place() -> None:
    assert letter_key("documents-2", 1007, None, "decode", b"x") == b"documents-2:1007/decode"
    key = letter_key("notes.jsonl, line 7", None, "ada", "decode", b"x")
    assert key == letter_key("notes.jsonl, line 7", None, "ada", "decode", b"x")
    others = [
        letter_key("notes.jsonl, line 8", None, "ada", "decode", b"x"),
        letter_key("notes.jsonl, line 7", None, "bob", "decode", b"x"),
        letter_key("notes.jsonl, line 7", None, "ada", "apply", b"x"),
        letter_key("notes.jsonl, line 7", None, "ada", "decode", b"y"),
        letter_key("notes.jsonl, line 7a", None, "da", "decode", b"x"),
    ]
    assert key not in others and len(set(others)) == 5
