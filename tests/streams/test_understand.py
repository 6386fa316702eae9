"""Tests of understanding for money: every passage is begun once, and what came back is never lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import ModelUnavailable
from index.types import Extraction
from index.understanding import ANSWERS, Understanding
from streams.understand import Reading

Text = tuple[str, str]


class ByHand:
    """An extractor whose answers come when the test says so."""

    fingerprint = "by hand"
    concurrency = 2

    def __init__(self) -> None:
        self.begun: list[Text] = []
        self.futures: dict[Text, Future[Extraction]] = {}
        self.answers: dict[Text, Extraction | Exception] = {}
        """What is answered at once."""

    def extract(self, passages: Sequence[Text]) -> list[Extraction]:
        raise AssertionError("passages are begun one by one")

    def begin(self, passage: Text) -> Future[Extraction]:
        self.begun.append(passage)
        future = self.futures[passage] = Future[Extraction]()
        if (answer := self.answers.get(passage)) is not None:
            self.end(passage, answer)
        return future

    def end(self, passage: Text, answer: Extraction | Exception) -> None:
        future = self.futures[passage]
        assert future.set_running_or_notify_cancel()
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def fall_back(self, passage: Text) -> Extraction:
        return Extraction(degraded=True)


ONE, TWO, THREE = ("", "one"), ("", "two"), ("t", "one")
SAID = {passage: Extraction(memory=f"{passage}") for passage in (ONE, TWO, THREE)}
AWAY = ModelUnavailable("no answer")


class Case:
    """A reading that can be started again over the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: Understanding | None = None
        self.extractor = ByHand()
        self.restart()

    def restart(self) -> None:
        """What a killed process leaves, found by the next one."""
        if self.known is not None:
            self.known.release()
        known = self.known = Understanding(self.folder)
        self.reading = Reading(lambda: known, self.extractor)

    def answered_at_once(self) -> None:
        self.extractor.answers.update(SAID)


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    yield Case(tmp_path)


def test_passages_are_read_once_and_come_back_in_order(case: Case) -> None:
    case.answered_at_once()
    asked = [ONE, TWO, ONE, THREE]
    assert case.reading(asked) == [SAID[passage] for passage in asked]
    assert case.reading(asked[::-1]) == [SAID[passage] for passage in asked[::-1]]
    assert case.extractor.begun == [ONE, TWO, THREE]
    assert case.reading([]) == []
    assert not list((case.folder / ANSWERS).iterdir()), "a batch is gathered in the table"


def test_what_was_begun_is_waited_for_and_not_begun_again(case: Case) -> None:
    case.reading.begin([ONE, TWO])
    case.reading.begin([TWO])
    assert case.reading.under_way == 2
    case.extractor.end(ONE, SAID[ONE])
    assert case.reading.under_way == 1
    case.extractor.end(TWO, SAID[TWO])
    assert case.reading([TWO, ONE]) == [SAID[TWO], SAID[ONE]]
    assert case.extractor.begun == [ONE, TWO]


def test_an_answer_is_kept_before_anybody_asks_for_it(case: Case) -> None:
    case.reading.begin([ONE, TWO])
    case.extractor.end(ONE, SAID[ONE])
    case.restart()
    case.answered_at_once()
    assert case.reading([ONE, TWO]) == [SAID[ONE], SAID[TWO]]
    assert case.extractor.begun == [ONE, TWO, TWO], "only what was under way is asked again"


def test_a_failure_costs_only_what_failed(case: Case) -> None:
    case.extractor.answers.update({ONE: SAID[ONE], TWO: AWAY})
    with pytest.raises(ModelUnavailable):
        case.reading([ONE, TWO, THREE])
    assert case.extractor.futures[THREE].cancelled(), "what has not begun is called off"
    case.answered_at_once()
    assert case.reading([ONE, TWO, THREE]) == [SAID[ONE], SAID[TWO], SAID[THREE]]
    assert case.extractor.begun == [ONE, TWO, THREE, TWO, THREE]


def test_a_degraded_reading_is_handed_out_once_and_not_kept(case: Case) -> None:
    badly = Extraction(degraded=True)
    case.extractor.answers[ONE] = badly
    case.reading.begin([ONE])
    assert case.reading([ONE]) == [badly]
    assert case.extractor.begun == [ONE]
    case.answered_at_once()
    assert case.reading([ONE]) == [SAID[ONE]]


def test_a_degraded_reading_survives_the_failure_of_another(case: Case) -> None:
    badly = Extraction(degraded=True)
    case.extractor.answers.update({ONE: badly, TWO: AWAY})
    with pytest.raises(ModelUnavailable):
        case.reading([ONE, TWO])
    case.extractor.answers[TWO] = SAID[TWO]
    assert case.reading([ONE, TWO]) == [badly, SAID[TWO]]
    assert case.extractor.begun == [ONE, TWO, TWO]


def test_an_answer_that_cannot_be_kept_is_told_and_not_lost(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.answered_at_once()
    with monkeypatch.context() as full:
        full.setattr(Understanding, "keep", _no_space)
        with pytest.raises(OSError, match="no space"):
            case.reading([ONE])
    assert case.reading([ONE]) == [SAID[ONE]]
    assert case.extractor.begun == [ONE]


def _no_space(*_: object) -> None:
    raise OSError("no space")


def test_closing_waits_for_calls_under_way_only(case: Case) -> None:
    case.reading.begin([ONE, TWO])
    case.extractor.futures[ONE].set_running_or_notify_cancel()
    case.extractor.futures[ONE].set_result(SAID[ONE])
    case.reading.close()
    assert case.extractor.futures[TWO].cancelled()
    case.restart()
    case.answered_at_once()
    case.reading([ONE])
    assert case.extractor.begun == [ONE, TWO]


calls = st.lists(st.tuples(st.sampled_from(["begin", "read", "kill"]), st.lists(st.sampled_from([ONE, TWO, THREE]))))


@given(calls)
def test_whatever_is_asked_in_whatever_order_is_paid_for_once(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, list[Text]]]
) -> None:
    case = Case(tmp_path_factory.mktemp("case"))
    case.answered_at_once()
    for what, passages in calls:
        if what == "kill":
            case.restart()
        elif what == "begin":
            case.reading.begin(passages)
        else:
            assert case.reading(passages) == [SAID[passage] for passage in passages]
    asked = {passage for what, passages in calls if what != "kill" for passage in passages}
    assert sorted(case.extractor.begun) == sorted(asked)
