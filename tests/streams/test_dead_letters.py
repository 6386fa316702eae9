"""Tests of the dead letters: kept whole, replayed once, forgotten when asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from index.errors import NotFound
from index.types import DocumentEvent
from streams.dead_letters import DeadLetters
from streams.log import Log


def event(id: str) -> DocumentEvent:
    return DocumentEvent(namespace="ada", id=id, text=f"text of {id}")


def waiting(log: Log) -> list[tuple[int, str]]:
    """Position and document of what is in the log."""
    return [(item.position, item.event.id) for item in log.read("ada", 0, 1_000, 1 << 30)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log.db") as log:
        yield log


def test_the_letters_of_one_namespace_are_forgotten(log: Log) -> None:
    letters = DeadLetters(log)
    for namespace in ("ada", "bob", "ada"):
        letters.put("feed", "apply", "odd", b"{}", namespace=namespace, id="d")
    assert letters.erase("ada") == 2
    assert [letter.namespace for letter in letters.waiting()] == ["bob"]


def test_a_dead_letter_is_kept_shown_and_removed(log: Log) -> None:
    letters = DeadLetters(log)
    first = letters.put("notes.jsonl:7", "decode", "not JSON", b"\xff{")
    second = letters.put("log", "apply", "odd", b"{}", position=4, namespace="ada", id="d", attempts=3)
    assert [letter.number for letter in letters.waiting()] == [first, second]
    assert [letter.number for letter in letters.waiting(limit=1, after=first)] == [second]
    letter = letters.show(first)
    assert (letter.source, letter.step, letter.reason, letter.payload) == (
        "notes.jsonl:7",
        "decode",
        "not JSON",
        b"\xff{",
    )
    assert (letter.position, letter.namespace, letter.id, letter.attempts) == (None, None, None, 1)
    letters.remove(first)
    assert letters.count() == 1
    for call in (letters.show, letters.remove):
        with pytest.raises(NotFound, match=str(first)):
            call(first)
    letters.remove(second)
    assert letters.put("log", "apply", "odd", b"{}") > second


def test_a_replay_happens_once_and_wakes_readers(log: Log) -> None:
    letters = DeadLetters(log)
    number = letters.put("feed", "decode", "no id", b'{"text": "x"}')
    token = letters.replay(number, event("repaired"))
    assert token == "log:1" and waiting(log) == [(1, "repaired")]
    assert letters.count() == 0 and letters.waiting() == [] and letters.show(number).replayed == 1
    with pytest.raises(NotFound):
        letters.replay(number, event("again"))
    with pytest.raises(NotFound):
        letters.replay(number + 1, event("never"))
    assert waiting(log) == [(1, "repaired")] and log.append([event("next")]) == ["log:2"]
