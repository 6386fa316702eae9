"""How far the snapshots lag behind the log: from nothing at all to a namespace whose files are damaged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.assembly import log_path
from deploy.lag import Lag, left_in_log
from deploy.settings import Settings
from index.home import Home
from index.manifest import Manifests
from index.models.hashing import HashingEmbedder
from index.types import DocumentEvent
from streams.applier import Pace
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

PIPELINE = Pipeline(CONTENT, RulesExtractor(), HashingEmbedder(16))
AGE = 100
"""Seconds before now at which the log accepts what these tests send."""


def event(namespace: str, id: str = "a") -> DocumentEvent:
    return DocumentEvent(namespace=namespace, id=id, text="Anna met Bert.")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log.db", clock=lambda: int((time.time() - AGE) * 1e6)) as log:
        yield log


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def about(seconds: float) -> object:
    return pytest.approx(seconds, abs=30)


def test_without_events_nothing_lags(log: Log, home: Home) -> None:
    lag = Lag(log, home)
    assert (lag.events(), lag.seconds(), lag.staleness("one", {})) == (0, 0.0, 0.0)


def test_what_is_not_applied_lags_until_it_is(log: Log, home: Home) -> None:
    lag = Lag(log, home)
    log.append([event("one"), event("two"), event("one", "b")])
    assert lag.events() == 3
    assert lag.seconds() == about(AGE)
    assert lag.staleness("two", {"log": 1}) == about(AGE)
    assert lag.staleness("two", {"log": 2}) == 0.0
    assert lag.staleness("one", {"log": 2}) == about(AGE)
    # Without a checkpoint the log keeps what is applied, which must not be taken for waiting.
    with Runner(home, log, PIPELINE, pace=Pace(checkpoint_seconds=1e6)) as runner:
        while runner.step():
            pass
        assert set(log.pending()) == {"one", "two"}
        assert (lag.events(), lag.seconds()) == (0, 0.0)


def test_one_namespace_that_is_stuck_shows(log: Log, home: Home) -> None:
    log.append([event("one"), event("two")])
    with Runner(home, log, PIPELINE, pace=Pace(checkpoint_seconds=1e6)) as runner:
        while runner.step():
            pass
        manifests = Manifests(home.incarnation("two") / "manifests")
        whole = manifests.path(manifests.numbers()[-1])
        content = whole.read_bytes()
        whole.write_bytes(content[:-10])
        assert Lag(log, home).events() == 1
        assert Lag(log, home).seconds() == about(AGE)
        whole.write_bytes(content)


def test_events_of_a_deleted_namespace_do_not_wait(log: Log, home: Home) -> None:
    log.append([event("one")])
    with Runner(home, log, PIPELINE) as runner:
        runner.drain()
    log.append([event("one", "late")])
    home.bury("one", {"log": log.last_position()})
    assert (Lag(log, home).events(), Lag(log, home).seconds()) == (0, 0.0)


def test_what_is_left_in_a_log_is_told_to_whoever_leaves_it(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    assert left_in_log(settings) == 0
    assert not log_path(settings).exists()
    with Log(log_path(settings)) as log:
        log.append([event("one"), event("two")])
        assert left_in_log(settings) == 2
        with Runner(Home(tmp_path), log, PIPELINE) as runner:
            runner.drain()
    assert left_in_log(settings) == 0
