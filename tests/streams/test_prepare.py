"""Tests of the understanding stage: order, look-ahead, and that nothing is lost or bought twice."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streams.buy
import streams.prepare
from index.errors import BrokerUnavailable, ModelUnavailable
from index.home import Home
from index.models.hashing import HashingEmbedder
from index.types import Extraction
from streams.ahead import ROUNDS
from streams.extract.base import Text
from streams.extract.rules import RulesExtractor
from streams.pipeline import Pipeline, understanding_of
from streams.prepare import MOST_AT_ONCE
from streams.understand import Understood

from ..support import wait_until
from .preparing import Case, Held
from .stubs import SMALL, PaidNoting

pytestmark = pytest.mark.usefixtures("no_pauses")


def test_what_costs_nothing_passes_and_is_read_by_nobody(tmp_path: Path) -> None:
    case = Case(tmp_path, RulesExtractor())
    case.send(*"abc")
    assert case.preparer.step()
    assert case.ids == ["a", "b", "c"] and not case.home.understanding("ada").exists()
    assert case.preparer.step() is False
    case.preparer.close()


def test_the_order_of_a_namespace_is_kept_and_others_do_not_wait_for_it(tmp_path: Path) -> None:
    extractor = Held()
    case = Case(tmp_path, extractor)
    case.send("a1", "a2")
    case.send("b1", namespace="bob")
    case.steps()
    assert case.told == []
    extractor.let_go("b1")
    case.steps()
    assert case.ids == ["b1"]
    extractor.let_go("a2")
    case.steps()
    assert case.ids == ["b1"]
    extractor.let_go("a1")
    case.steps()
    assert case.ids == ["b1", "a1", "a2"]
    case.preparer.close()


def test_as_many_passages_are_read_as_the_model_can_and_one_round_waits(tmp_path: Path) -> None:
    """Of one namespace and across several; no more than that is ever begun."""
    for names in (["ada"], ["ada", "bob", "cy", "dee"]):
        extractor = Held()
        case = Case(tmp_path / str(len(names)), extractor)
        for name in names:
            case.send(*(f"{name}{number}" for number in range(12)), namespace=name)
        while len(case.ids) < 12 * len(names):
            case.steps(3)
            left = 12 * len(names) - sum(future.done() for future in extractor.futures.values())
            assert len(extractor.in_flight) == min(left, ROUNDS * extractor.concurrency)
            if extractor.in_flight:
                extractor.let_go(extractor.in_flight[0])
        case.preparer.close()


def test_a_slow_passage_holds_up_its_namespace_only(tmp_path: Path) -> None:
    """What is read behind it does not take the room of others, and is bounded."""
    extractor = Held()
    case = Case(tmp_path, extractor)
    case.send("slow")
    case.steps(1)
    extractor.open = True
    case.send(*(f"a{number}" for number in range(MOST_AT_ONCE + 50)))
    case.send(*(f"b{number}" for number in range(20)), namespace="bob")
    case.steps()
    assert set(case.ids) == {f"b{number}" for number in range(20)}
    assert len([text for text in extractor.begun if text.startswith("a")]) == MOST_AT_ONCE - 1
    extractor.let_go("slow")
    case.steps()
    assert len(case.ids) == 21 + MOST_AT_ONCE + 50
    assert [id for id in case.ids if id[0] != "b"] == ["slow", *(f"a{number}" for number in range(MOST_AT_ONCE + 50))]
    case.preparer.close()


def test_namespaces_take_turns_however_much_the_first_has_waiting(tmp_path: Path) -> None:
    extractor = Held()
    case = Case(tmp_path, extractor)
    case.send(*(f"a{number}" for number in range(500)))
    for number in range(20):
        case.send(f"b{number}", namespace=f"bob{number}")
    answered = 0
    while sum(id.startswith("b") for id in case.ids) < 20:
        case.preparer.step()
        extractor.let_go(extractor.in_flight[0])
        answered += 1
        assert answered <= 20 + 2 * ROUNDS * extractor.concurrency, "it has the turn of any other"
    extractor.open = True
    extractor.let_go(*extractor.in_flight)
    case.preparer.close()


def test_a_document_of_more_passages_than_fit_is_begun_all_the_same(tmp_path: Path) -> None:
    extractor = Held()
    case = Case(tmp_path, extractor)
    case.pipeline = Pipeline(SMALL, extractor, HashingEmbedder(16))
    case.restart()
    case.send("huge", text=" ".join(f"Number {number} is one of very many sentences." for number in range(60)))
    case.send("next", namespace="bob")
    case.steps()
    assert len(extractor.in_flight) > ROUNDS * extractor.concurrency and "next" not in extractor.begun
    extractor.let_go(*extractor.in_flight)
    case.steps()
    extractor.let_go("next")
    case.steps()
    assert case.ids == ["huge", "next"]
    case.preparer.close()


def test_closing_in_the_middle_keeps_what_is_under_way(tmp_path: Path) -> None:
    extractor = Held()
    case = Case(tmp_path, extractor)
    case.send("a1", "a2", "a3")
    case.preparer.start()
    wait_until(lambda: len(extractor.in_flight) == 3, what="all passages under way")
    extractor.let_go("a1")
    wait_until(lambda: case.ids == ["a1"], what="the first event")
    closing = threading.Thread(target=case.preparer.close)
    closing.start()
    extractor.let_go("a3", "a2")
    closing.join(20)
    assert not closing.is_alive()
    done = [entry.offset for entries in case.window.take_done().values() for entry in entries]
    case.restart()
    extractor.open = True
    case.offer(*case.sent[len(done) :])
    case.steps()
    assert case.ids == ["a1", "a2", "a3"] and Counter(extractor.begun) == Counter(["a1", "a2", "a3"])
    case.preparer.close()


def test_closing_many_namespaces_takes_no_longer_than_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(streams.buy, "LAST_SECONDS", 0.2)
    close = Understood.close

    def noting(self: Understood, seconds: float) -> None:
        waited.append(seconds)
        close(self, seconds)

    monkeypatch.setattr(Understood, "close", noting)
    extractor = Held()
    case = Case(tmp_path, extractor)
    for name in ("ada", "bob", "cy"):
        case.send(name, namespace=name)
    case.steps(1)
    case.preparer.close()
    assert len(waited) == 3 and sum(seconds > 0.1 for seconds in waited) == 1
    extractor.let_go(*extractor.in_flight)


def test_its_thread_is_woken_by_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams.prepare, "_IDLE_SECONDS", 3600.0)
    extractor = Held()
    case = Case(tmp_path, extractor)
    case.preparer.start()
    case.send("a")
    wait_until(lambda: extractor.in_flight == ["a"], what="the passage under way")
    extractor.let_go("a")
    wait_until(lambda: case.ids == ["a"], what="the event")
    case.preparer.close()
    assert case.preparer.error is None


def test_few_namespaces_are_held_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams.buy, "MOST_OPEN", 2)
    opened: list[str] = []
    closed: list[Understood] = []
    close = Understood.close

    def open_noting(home: Home, name: str, pipeline: Pipeline) -> Understood:
        opened.append(name)
        return understanding_of(home, name, pipeline)

    def close_noting(self: Understood, seconds: float = 0.0) -> None:
        closed.append(self)
        close(self, seconds)

    monkeypatch.setattr(streams.buy, "understanding_of", open_noting)
    monkeypatch.setattr(Understood, "close", close_noting)
    extractor = Held()
    case = Case(tmp_path, extractor)
    for name in ("n1", "n2", "n3"):
        case.send(name, namespace=name)
    case.steps()
    assert opened == ["n1", "n2", "n3"] and not closed, "none is closed that has something under way"
    extractor.open = True
    extractor.let_go("n1", "n2", "n3")
    case.steps()
    case.send("x", namespace="n4")
    case.steps()
    assert opened[-1] == "n4" and len(closed) == 2
    case.preparer.close()
    assert len(closed) == len(opened)


class Threads(PaidNoting):
    """A model of two threads that fails now and then; `bought` counts what it answered."""

    concurrency = 2

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.pool = ThreadPoolExecutor(self.concurrency)
        self.random = np.random.default_rng(seed)
        self.lock = threading.Lock()
        self.bought: Counter[str] = Counter()
        self.active = self.most_active = 0

    def begin(self, passage: Text) -> Future[Extraction]:
        return self.pool.submit(self._answer, passage)

    def _answer(self, passage: Text) -> Extraction:
        with self.lock:
            self.active += 1
            self.most_active = max(self.most_active, self.active)
            fails = bool(self.random.random() < 0.1)
        try:
            if "poison" in passage[1]:
                raise ValueError("cannot read poison")
            if fails:
                raise ModelUnavailable("no answer")
            self.bought[passage[1]] += 1
            return Extraction(memory=passage[1])
        finally:
            with self.lock:
                self.active -= 1


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.sampled_from(["ada", "bob", "cy"]), st.sampled_from(["x", "y", "poison", ""])), max_size=40),
    st.lists(st.integers(0, 30), max_size=3),
    st.integers(0, 2**32),
)
def test_whatever_comes_is_told_in_order_and_bought_once(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, str]], kills: list[int], seed: int
) -> None:
    """A model that fails, poison, telling that fails, and workers that end in the middle."""
    extractor = Threads(seed)
    case = Case(tmp_path_factory.mktemp("case"), extractor)
    for number, (name, text) in enumerate(events):
        case.send(str(number), namespace=name, text=f"{text} {number % 7}" if text else "")
    done = 0
    for attempts in [*kills, None]:
        case.refusals = [BrokerUnavailable("no broker")]
        case.preparer.start()
        before = len(case.attempts)
        if attempts is None:
            wait_until(lambda: not case.window.names(), timeout=60, what="the end of the stream")
        else:
            limit = before + attempts
            wait_until(lambda: not case.window.names() or len(case.attempts) >= limit, timeout=60)  # noqa: B023
        case.preparer.close()
        assert case.preparer.error is None
        done += sum(map(len, case.window.take_done().values()))
        case.restart()
        case.offer(*case.sent[done:])
    case.preparer.close()
    told: dict[str, list[int]] = defaultdict(list)
    names = {str(number): name for number, (name, _) in enumerate(events)}
    for id in case.ids:
        told[names[id]].append(int(id))
    for name in told:
        # A worker that ended may have told of some that were not acknowledged: those come again, in order.
        firsts = list(dict.fromkeys(told[name]))
        wanted = [number for number, (of, _) in enumerate(events) if of == name]
        assert firsts == wanted
    for text, count in extractor.bought.items():
        assert count <= len({name for name, of in events if f"{of} " in text}), f"{text!r} was bought {count} times"
    assert extractor.most_active <= extractor.concurrency
    extractor.pool.shutdown()
