"""What every box of dead letters promises, held by the one beside the log and by the one in a topic."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import NotFound
from index.types import DocumentEvent
from streams.letter import DeadLetter, LetterBox
from tests.broker.cluster import Cluster

from .letter_boxes import Accepting, connected, local_letters, make_topic, topic_letters

Open = Callable[[], AbstractContextManager[LetterBox]]
"""Opens the same letters once more, as a process does that comes later."""


def event(id: str) -> DocumentEvent:
    return DocumentEvent(namespace="ada", id=id, text=f"text of {id}")


def opener(kind: str, request: pytest.FixtureRequest, folder: Path) -> Open:
    """Letters of their own."""
    own = secrets.token_hex(4)
    if kind == "local":
        (folder / own).mkdir()
        return lambda: local_letters(folder / own)
    cluster: Cluster = request.getfixturevalue("kafka")
    connection, inbox = connected(cluster, f"t{own}-"), Accepting()
    make_topic(connection)
    return lambda: topic_letters(connection, inbox)


@pytest.fixture(params=["local", "topic"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Open]:
    return lambda: opener(request.param, request, tmp_path)


@pytest.fixture
def letters(make: Callable[[], Open]) -> Iterator[LetterBox]:
    with make()() as letters:
        yield letters


def test_a_letter_is_kept_shown_and_removed(letters: LetterBox) -> None:
    first = letters.put(torn := DeadLetter("notes.jsonl:7", "decode", "not JSON", b"\xff{\0"))
    odd = DeadLetter("log", "apply", "odd", b"{}", position=4, namespace="ada", id="d/é", attempts=3)
    second = letters.put(odd)
    assert first < second and letters.count() == 2
    assert [letter.number for letter in letters.waiting()] == [first, second]
    assert [letter.number for letter in letters.waiting(limit=1)] == [first]
    assert [letter.number for letter in letters.waiting(limit=1, after=first)] == [second]
    assert letters.waiting(after=second) == []
    shown = letters.show(first)
    assert shown == letters.waiting()[0] and shown.at > 1_700_000_000_000_000
    assert replace(shown, at=0) == replace(torn, number=first)
    assert replace(letters.show(second), at=0) == replace(odd, number=second)
    letters.remove(first)
    assert letters.count() == 1
    for call in (letters.show, letters.remove):
        with pytest.raises(NotFound, match=f"no dead letter {first} waits"):
            call(first)
    letters.remove(second)
    assert letters.waiting() == [] and letters.put(DeadLetter("log", "apply", "odd", b"{}")) > second


def test_a_replay_happens_once(letters: LetterBox) -> None:
    number = letters.put(DeadLetter("feed", "decode", "no id", b'{"text": "x"}', namespace="ada"))
    token = letters.replay(number, event("repaired"))
    assert letters.count() == 0 and letters.waiting() == []
    shown = letters.show(number)
    assert (shown.number, shown.replayed, shown.reason, shown.payload) == (number, token, "no id", b'{"text": "x"}')
    for unknown in (number, number + 1, 10**6):
        with pytest.raises(NotFound):
            letters.replay(unknown, event("again"))
    letters.remove(number)
    with pytest.raises(NotFound):
        letters.show(number)


def test_the_letters_of_one_namespace_are_forgotten(letters: LetterBox) -> None:
    numbers = [
        letters.put(DeadLetter("feed", "apply", "odd", b"%d" % number, namespace=namespace, id="d"))
        for number, namespace in enumerate(("ada", "bob", "ada", None))
    ]
    letters.replay(numbers[0], event("d"))
    assert letters.erase("ada") == 2 and letters.erase("ada") == 0
    assert [letter.namespace for letter in letters.waiting()] == ["bob", None]
    with pytest.raises(NotFound):
        letters.show(numbers[0])


Step = tuple[str, int]
steps = st.lists(
    st.tuples(st.sampled_from(["put", "put", "put", "remove", "replay", "erase", "reopen"]), st.integers(0, 30)),
    max_size=20,
)


@settings(max_examples=12)
@given(steps)
def test_whatever_is_done_the_same_letters_wait(make: Callable[[], Open], steps: list[Step]) -> None:
    waiting: dict[int, tuple[str, bytes]] = {}
    replayed: dict[int, tuple[str, bytes]] = {}
    reopen = make()
    box = reopen()
    letters = box.__enter__()
    try:
        for count, (step, choice) in enumerate(steps):
            chosen = sorted(waiting)[choice % len(waiting)] if waiting else None
            if step == "put":
                namespace, payload = "ab"[choice % 2], b"%d" % count
                number = letters.put(DeadLetter("feed", "decode", "odd", payload, namespace=namespace))
                assert number > max(waiting | replayed, default=0)
                waiting[number] = namespace, payload
            elif step == "remove" and chosen:
                letters.remove(chosen)
                del waiting[chosen]
            elif step == "replay" and chosen:
                token = letters.replay(chosen, event("x"))
                assert letters.show(chosen).replayed == token
                replayed[chosen] = waiting.pop(chosen)
            elif step == "erase":
                gone = [known for known in waiting | replayed if (waiting | replayed)[known][0] == "a"]
                assert letters.erase("a") == len(gone)
                waiting = {number: held for number, held in waiting.items() if number not in gone}
                replayed = {number: held for number, held in replayed.items() if number not in gone}
            elif step == "reopen":
                box.__exit__(None, None, None)
                box = reopen()
                letters = box.__enter__()
            assert letters.count() == len(waiting)
        found = [(letter.number, (letter.namespace, letter.payload)) for letter in letters.waiting()]
        assert found == sorted(waiting.items())
        for number, (namespace, payload) in replayed.items():
            assert (letters.show(number).namespace, letters.show(number).payload) == (namespace, payload)
    finally:
        box.__exit__(None, None, None)
