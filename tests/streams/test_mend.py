"""Tests of reading degraded passages again: when, which, and that nothing but them changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from index.errors import ModelUnavailable
from index.home import Home
from index.manifest import Manifests
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.types import DocumentEvent, Extraction, Triple
from streams import mend as mend_module
from streams.applier import Pace
from streams.local import Runner
from streams.log import Log
from streams.mend import Degraded
from streams.pipeline import Pipeline
from streams.rebuild import verify

from .stubs import SMALL, PaidNoting

Text = tuple[str, str]
AT_ONCE, NEVER = Pace(mend_seconds=0.0), Pace(mend_seconds=3600.0)


class Moody(PaidNoting):
    """Reads every passage as one fact, or badly while `bad` is set."""

    bad = True
    away = False

    def extract(self, passages: Sequence[Text]) -> list[Extraction]:
        if self.away:
            raise ModelUnavailable("no answer")
        self.read += [text for _, text in passages]
        known = [Extraction("m", ("Ada",), (Triple("Ada", "wrote", text),)) for _, text in passages]
        return [self.fall_back(passage) for passage in passages] if self.bad else known


class Case:
    def __init__(self, log: Log) -> None:
        self.log = log
        self.home = Home(log.database.path.parent)
        self.extractor = Moody()
        self.pipeline = Pipeline(SMALL, self.extractor, HashingEmbedder(16))

    def runner(self, pace: Pace) -> Runner:
        return Runner(self.home, self.log, self.pipeline, pace=pace)

    def send(self, *ids: str) -> None:
        self.log.append([DocumentEvent(namespace="ada", id=id, text=f"It is {id}.") for id in ids])

    def degraded(self) -> int:
        snapshot = Reader(self.home.incarnation("ada")).snapshot
        return int(snapshot.dataset("passages").count_rows("degraded"))

    def newest(self) -> int:
        return Manifests(self.home.incarnation("ada") / "manifests").numbers()[-1]


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with Log(tmp_path / "log.db") as log:
        yield Case(log)


def test_what_is_understood_by_then_takes_the_place_of_the_fallback(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mend_module, "AT_ONCE", 2)
    case.send(*"abcde")
    with case.runner(NEVER) as runner:
        runner.drain()
    assert case.degraded() == 5 and not list(verify(case.home, "ada", case.pipeline))
    case.extractor.bad = False
    with case.runner(AT_ONCE) as runner:
        left = [(runner.step(), case.degraded())[1] for _ in range(3)]
    assert left == [3, 1, 0], "some at a time"
    assert not list(verify(case.home, "ada", case.pipeline))
    assert Reader(case.home.incarnation("ada")).snapshot.manifest.counts.facts == 5


def test_what_stays_unreadable_commits_nothing(case: Case) -> None:
    case.send("a")
    with case.runner(AT_ONCE) as runner:
        runner.drain()
        before = case.newest()
        runner.step()
        assert case.extractor.read == ["It is a."] * len(case.extractor.read) and len(case.extractor.read) > 1
        assert case.newest() == before


def test_a_model_that_is_away_holds_nobody_up(case: Case) -> None:
    case.send("a")
    with case.runner(NEVER) as runner:
        runner.drain()
    case.extractor.away = True
    with case.runner(AT_ONCE) as runner:
        runner.step()
        assert not runner.troubles
        case.extractor.away = case.extractor.bad = False
        runner.step()
    assert case.degraded() == 0


def test_nothing_is_read_again_before_its_time(case: Case) -> None:
    case.send("a")
    with case.runner(NEVER) as runner:
        runner.drain()
        runner.step()
    assert case.extractor.read == ["It is a."]


def test_namespaces_that_were_made_otherwise_or_are_gone_are_left_alone(case: Case) -> None:
    case.send("a")
    with case.runner(NEVER) as runner:
        runner.drain()
    other = Pipeline(SMALL, case.extractor, HashingEmbedder(17))
    assert Degraded(case.home, other, 0.0, lambda name: True).next() is None
    mine = Degraded(case.home, case.pipeline, 0.0, lambda name: True)
    assert mine.next() is not None
    case.home.bury("ada", {"log": 1})
    assert Degraded(case.home, case.pipeline, 0.0, lambda name: True).next() is None
