"""Waiting for events of several sources: counted as their namespaces' positions say, one by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.awaited import Awaited
from deploy.letters import refused
from deploy.sending import Sending
from index.home import Home, Pointer
from index.token import Token
from index.types import DocumentEvent
from streams.dead_letters import DeadLetters
from streams.letter import DeadLetter
from streams.log import Log

NAMES = ["ada", "bob"]
SOURCES = ["log", "documents-0", "documents-11"]

sent = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(SOURCES)), max_size=30)
positions = st.dictionaries(st.sampled_from(SOURCES), st.integers(-1, 30))


class Places(Home):
    """Namespaces of which nothing but the positions is there."""

    def __init__(self) -> None:
        super().__init__(Path("nowhere"))
        self.held: dict[str, Mapping[str, int]] = {}

    def pointer(self, name: str) -> Pointer | None:
        if name not in self.held:
            return None
        return Pointer(incarnation="none", deleted=True, positions=self.held[name])


def accept(awaited: Awaited, sent: list[tuple[str, str]]) -> list[tuple[str, Token]]:
    """Wait for events that take the next position of their source, counted from 0."""
    counts = dict.fromkeys(SOURCES, 0)
    accepted = []
    for name, source in sent:
        token = Token(source, counts[source])
        counts[source] += 1
        accepted.append((name, token))
        awaited.add([DocumentEvent(namespace=name, id="x")], [str(token)])
    return accepted


@given(sent, st.sets(st.integers(0, 30)), st.dictionaries(st.sampled_from(NAMES), positions))
def test_what_is_settled_is_waited_for_no_longer(
    sent: list[tuple[str, str]], settled: set[int], held: dict[str, dict[str, int]]
) -> None:
    home = Places()
    awaited = Awaited(home)
    accepted = accept(awaited, sent)
    gone = {accepted[number] for number in settled if number < len(accepted)}
    for _, token in gone:
        awaited.settle(token)
        awaited.settle(token)
    home.held |= held
    seen = {(of, token) for of, token in accepted if token.position <= held.get(of, {}).get(token.source, -1)}
    assert awaited.visible() == len(seen | gone) and len(awaited) == len(sent)
    assert set(awaited.namespaces()) == {of for of, token in accepted if (of, token) not in seen | gone}
    assert all(token in awaited for _, token in accepted)


@given(sent, st.lists(st.tuples(st.sampled_from(NAMES), positions), max_size=4))
def test_an_event_is_visible_where_the_positions_of_its_namespace_reach_it(
    sent: list[tuple[str, str]], steps: list[tuple[str, dict[str, int]]]
) -> None:
    home = Places()
    awaited = Awaited(home)
    accepted = accept(awaited, sent)
    held = {name: dict.fromkeys(SOURCES, -1) for name in NAMES}
    for name, moved in steps:
        home.held[name] = held[name] = {source: max(at, moved.get(source, -1)) for source, at in held[name].items()}
        seen = {(of, token) for of, token in accepted if token.position <= held[of][token.source]}
        assert awaited.visible() == len(seen)
        assert set(awaited.namespaces()) == {of for of, token in accepted if (of, token) not in seen}
    assert len(awaited) == len(sent)
    assert awaited.last == (str(accepted[-1][1]) if accepted else None)
    everywhere = [Token(source, position) for source in SOURCES for position in range(31)]
    assert {token for token in everywhere if token in awaited} == {token for _, token in accepted}


def test_waiting_ends_with_the_last_event() -> None:
    home = Places()
    awaited = Awaited(home)
    accept(awaited, [("ada", "documents-0"), ("bob", "documents-11")])
    asked: list[set[str]] = []

    def attend(names: Collection[str]) -> None:
        asked.append(set(names))
        home.held["ada" if len(asked) == 1 else "bob"] = {"documents-0": 0, "documents-11": 0}

    assert list(awaited.until_visible(attend)) == [0, 1, 2] and asked == [{"ada", "bob"}, {"bob"}]


def test_what_keeps_an_event_from_becoming_visible_is_raised() -> None:
    awaited = Awaited(Places())
    accept(awaited, [("ada", "log")])

    def attend(_: Collection[str]) -> None:
        raise RuntimeError("the runner has stopped")

    with pytest.raises(RuntimeError, match="has stopped"):
        list(awaited.until_visible(attend))


def test_an_event_that_workers_refused_is_not_waited_for(tmp_path: Path) -> None:
    awaited = Awaited(Places())
    accept(awaited, [("ada", "documents-0"), ("ada", "documents-0")])
    with Log(tmp_path / "log.db") as log:
        letters = DeadLetters(log)

        def attend(_: Collection[str]) -> None:
            if not letters.count():
                letters.put(DeadLetter("documents-0", "decode", "another", b"{", position=7))
                for position in range(2):
                    letters.put(DeadLetter("documents-0", "understand", "odd", b"{", position=position))

        assert set(Sending(log, letters, attend).until_visible(awaited)) == {0, 2}
        assert [letter.position for letter in refused(letters, awaited)] == [0, 1]
