"""Tests of the understanding stage where models and brokers are away, or refuse what they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import streams.buy
import streams.prepare
from index.errors import BrokerRefused, BrokerUnavailable, BudgetSpent, ModelError, ModelUnavailable
from index.types import Accepted, Role
from streams.apply import passages_of
from streams.chunk import WHOLE
from streams.extract.rules import RulesExtractor

from ..support import wait_until
from .preparing import Case, Held, Remote

pytestmark = pytest.mark.usefixtures("no_pauses")


def test_a_model_that_is_away_holds_up_its_namespace_and_nothing_is_lost_or_bought_twice(tmp_path: Path) -> None:
    extractor = Held(is_open=True)
    extractor.errors["a2"] = ModelUnavailable("no answer")
    case = Case(tmp_path, extractor)
    case.send("a1", "a2", "a3")
    case.send("b1", "b2", namespace="bob")
    case.steps()
    assert sorted(case.ids) == ["a1", "b1", "b2"]
    assert isinstance(case.preparer.troubles.of("ada"), ModelUnavailable) and case.preparer.is_held_up
    del extractor.errors["a2"]
    case.steps()
    assert [id for id in case.ids if id[0] == "a"] == ["a1", "a2", "a3"]
    assert not case.preparer.is_held_up
    assert Counter(extractor.read) == Counter(["a1", "a2", "a3", "b1", "b2"])
    case.preparer.close()


@pytest.mark.parametrize("error", [BudgetSpent("no money"), OSError("no space")], ids=["held", "disk"])
def test_what_is_no_fault_of_an_event_refuses_none(tmp_path: Path, error: Exception) -> None:
    extractor = Held(is_open=True)
    extractor.errors["a1"] = error
    case = Case(tmp_path, extractor)
    case.send("a1", "a2")
    case.steps()
    assert case.ids == [] and case.preparer.troubles.of("ada") is error
    extractor.errors.clear()
    case.steps()
    assert case.ids == ["a1", "a2"]
    case.preparer.close()


@pytest.mark.parametrize("where", ["chunker", "extractor", "embedder"])
def test_an_event_that_can_never_be_understood_is_for_the_applier_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    extractor, embedder = Held(is_open=True), Remote()
    case = Case(tmp_path, extractor, embedder)
    if where == "chunker":

        def crash(accepted: Accepted, *rest: object) -> object:
            if accepted.event.id == "bad":
                raise RecursionError("too deep")
            return passages_of(accepted, WHOLE)

        monkeypatch.setattr(streams.buy, "passages_of", crash)
    elif where == "extractor":
        extractor.errors["bad"] = ValueError("cannot read this")
    else:
        monkeypatch.setattr(embedder, "embed", _embeds_all_but("bad", embedder.embed))
    case.send("a1", "bad", "a2", "a3")
    case.steps()
    assert case.ids == ["a1", "bad", "a2", "a3"]
    assert case.preparer.error is None and not case.preparer.troubles and not len(case.window.take_done()[0]) - 4
    case.preparer.close()


def _embeds_all_but(bad: str, embed: Callable[..., NDArray[np.float32]]) -> Callable[..., NDArray[np.float32]]:
    def refusing(texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        if bad in texts:
            raise ModelError("it cannot be embedded")
        return embed(texts, role)

    return refusing


def test_what_was_given_up_is_not_tried_again_by_the_same_worker(tmp_path: Path) -> None:
    extractor = Held(is_open=True)
    extractor.errors.update(bad=ValueError("cannot read this"), away=ModelUnavailable("no answer"))
    case = Case(tmp_path, extractor)
    case.send("bad", "away")
    case.steps()
    assert case.ids == ["bad"]
    extractor.errors.clear()
    case.steps()
    assert case.ids == ["bad", "away"]
    case.preparer.close()


def test_what_was_not_heard_is_told_again_before_anything_else(tmp_path: Path) -> None:
    extractor = Held()
    case = Case(tmp_path, extractor)
    case.refusals = [BrokerUnavailable("no broker")] * 3
    case.send("a1", "a2")
    case.send("b1", namespace="bob")
    case.steps(1)
    extractor.let_go("a1")
    assert case.preparer.step() and case.preparer.is_held_up
    extractor.open = True
    extractor.let_go("a2", "b1")
    case.send("a3")
    case.steps()
    assert case.attempts[:4] == [["a1"]] * 4, "the same batch, until it is heard"
    assert [id for id in case.ids if id[0] == "a"] == ["a1", "a2", "a3"] and "b1" in case.ids
    assert not case.preparer.is_held_up and len(case.window.take_done()[0]) == 4
    case.preparer.close()


def test_a_broker_that_refuses_ends_it(tmp_path: Path) -> None:
    case = Case(tmp_path, Held(is_open=True))
    case.refusals = [BrokerRefused("not allowed")]
    case.preparer.start()
    case.send("a")
    wait_until(lambda: case.preparer.error is not None, what="the error")
    assert isinstance(case.preparer.error, BrokerRefused) and case.window.take_done() == {}
    case.preparer.close()


def test_a_remote_embedder_is_asked_for_each_text_once(tmp_path: Path) -> None:
    for extractor in (RulesExtractor(), Held(is_open=True)):
        embedder = Remote()
        case = Case(tmp_path / type(extractor).__name__, extractor, embedder)
        case.send(*"abcde", text="Ada Moor met Bo Larsen.")
        case.send("f", text="Bo Larsen left Ada Moor.")
        case.steps(1)
        case.preparer.close()
        case.restart()
        case.offer(*case.sent)
        case.steps()
        assert case.ids[-6:] == [*"abcdef"]
        assert embedder.asked and set(embedder.asked.values()) == {1}
        case.preparer.close()


def test_an_embedder_that_is_away_holds_up_its_namespace(tmp_path: Path) -> None:
    embedder = Remote()
    case = Case(tmp_path, RulesExtractor(), embedder)
    embedder.error = ModelUnavailable("no answer")
    case.send("a", "b")
    case.steps()
    assert case.ids == [] and case.preparer.is_held_up
    embedder.error = None
    case.steps()
    assert case.ids == ["a", "b"]
    case.preparer.close()
