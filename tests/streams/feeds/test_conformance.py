"""The laws that every feed keeps, whatever it reads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import StoreError
from index.types import DocumentEvent
from streams.feeds.base import Step
from streams.log import Log

from .sources import NAMESPACE, Delivered


class Killed(Exception):
    """Stands for the end of the process at this place."""


class KilledAfterAppend(Log):
    """The same log, whose process ends when the next append is durable and nobody has been told."""

    def __init__(self, log: Log) -> None:
        self._inside = log

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        self._inside.append(events)
        raise Killed


class Full(Log):
    """A log that takes nothing."""

    def __init__(self) -> None: ...

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        raise StoreError("the disk is full")


def put(delivered: Delivered, **texts: str) -> None:
    for name, text in texts.items():
        delivered.source.put(f"{name}.txt", text)


def expected(delivered: Delivered, **texts: str) -> dict[str, str]:
    return {delivered.source.id(f"{name}.txt"): text for name, text in texts.items()}


def test_the_first_look_brings_everything(delivered: Delivered) -> None:
    put(delivered, a="One.", b="Zwei: äöü 日本.", c="Three & <four>.")
    brought = delivered.follow()
    assert {event.id: event.text for event in brought} == expected(
        delivered, a="One.", b="Zwei: äöü 日本.", c="Three & <four>."
    )
    assert {event.namespace for event in brought} == {NAMESPACE}
    assert delivered.book.progress(delivered.entry).events == 3


def test_an_empty_source_brings_nothing(delivered: Delivered) -> None:
    assert delivered.follow() == []
    assert delivered.book.progress(delivered.entry).succeeded_at


def test_the_second_look_brings_nothing(delivered: Delivered) -> None:
    put(delivered, a="One.", b="Two.")
    delivered.follow()
    before = delivered.documents()
    again = delivered.follow()
    assert again == [] or not delivered.source.remembers
    assert delivered.documents() == before


def test_a_change_brings_that_document_only(delivered: Delivered) -> None:
    put(delivered, a="One.", b="Two.")
    delivered.follow()
    put(delivered, b="Two, longer.")
    brought = delivered.follow()
    if delivered.source.remembers:
        assert [(event.op, event.text) for event in brought] == [("upsert", "Two, longer.")]
    assert delivered.documents() == expected(delivered, a="One.", b="Two, longer.")


def test_what_was_removed_is_deleted_once(delivered: Delivered) -> None:
    put(delivered, a="One.", b="Two.")
    delivered.follow()
    delivered.source.remove("a.txt")
    brought = delivered.follow()
    if delivered.source.remembers:
        assert [(event.op, event.id) for event in brought] == [("delete", delivered.source.id("a.txt"))]
        assert delivered.follow() == []
    assert delivered.documents() == expected(delivered, b="Two.")


def test_a_flaw_stops_nobody_and_is_told_once(delivered: Delivered) -> None:
    put(delivered, a="One.")
    delivered.source.spoil("b.txt")
    put(delivered, c="Three.")
    delivered.follow()
    assert delivered.documents() == expected(delivered, a="One.", c="Three.")
    [letter] = delivered.refused()
    assert letter.namespace == NAMESPACE
    assert letter.step == "decode"
    assert letter.reason and "\n" not in letter.reason
    assert "xxx" not in letter.reason
    assert delivered.book.progress(delivered.entry).rejected == 1
    if delivered.source.remembers:
        delivered.follow()
        assert len(delivered.refused()) == 1


def test_what_was_repaired_comes(delivered: Delivered) -> None:
    delivered.source.spoil("a.txt")
    delivered.follow()
    put(delivered, a="Repaired.")
    delivered.follow()
    assert delivered.documents() == expected(delivered, a="Repaired.")


def test_killed_behind_the_append_nothing_is_lost_and_nothing_twice(delivered: Delivered) -> None:
    put(delivered, a="One.", b="Two.")
    with pytest.raises(Killed):
        delivered.follow(KilledAfterAppend(delivered.log))
    put(delivered, c="Three.")
    delivered.follow()
    assert delivered.documents() == expected(delivered, a="One.", b="Two.", c="Three.")
    assert delivered.follow() == [] or not delivered.source.remembers


def test_what_was_removed_behind_a_kill_is_deleted(delivered: Delivered) -> None:
    put(delivered, a="One.", b="Two.")
    with pytest.raises(Killed):
        delivered.follow(KilledAfterAppend(delivered.log))
    delivered.source.remove("a.txt")
    delivered.follow()
    assert delivered.documents() == expected(delivered, b="Two.")


def test_what_the_log_did_not_take_comes_again(delivered: Delivered) -> None:
    put(delivered, a="One.")
    with pytest.raises(StoreError):
        delivered.follow(Full())
    assert delivered.book.progress(delivered.entry).error == "the disk is full"
    delivered.follow()
    assert delivered.documents() == expected(delivered, a="One.")
    assert delivered.book.progress(delivered.entry).error is None


def test_the_same_source_gives_the_same_events(delivered: Delivered) -> None:
    put(delivered, a="One.", b="Two.")
    memory = delivered.book.memory(delivered.entry)
    first, second = (list(delivered.source.feed().poll(memory)) for _ in range(2))
    assert _events(first) == _events(second) != []


@settings(max_examples=20)
@given(data=st.data())
def test_in_the_end_the_documents_are_those_of_the_source(delivered: Delivered, data: st.DataObject) -> None:
    names = [f"{name}.txt" for name in "abc"]
    held = {name for name in names if delivered.source.id(name) in delivered.documents()}
    texts = {name: text for name in names if (text := delivered.documents().get(delivered.source.id(name)))}
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(names))
        act = data.draw(st.sampled_from(["put", "remove", "follow", "kill"]))
        if act == "put":
            texts[name] = data.draw(st.sampled_from(["One.", "Two.", "Three."]))
            delivered.source.put(name, texts[name])
            held.add(name)
        elif act == "remove" and name in held:
            delivered.source.remove(name)
            held.discard(name)
            texts.pop(name)
        elif act == "follow":
            delivered.follow()
        elif act == "kill":
            with suppress(Killed):
                delivered.follow(KilledAfterAppend(delivered.log))
    delivered.follow()
    assert delivered.documents() == {delivered.source.id(name): text for name, text in texts.items()}


def _events(steps: list[Step]) -> list[DocumentEvent]:
    return [event for step in steps for event in step.events]
