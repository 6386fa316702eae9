"""Namespaces that other settings made are made anew by the runner, while their former index answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import streams.renewals
from index.errors import WrongFingerprint
from index.home import Home
from index.manifest import Manifests
from index.metrics import Metrics
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.types import DocumentEvent, Extraction
from streams import trouble
from streams.local import Runner
from streams.log import Log
from streams.pipeline import UNFINISHED, Pipeline, open_namespace
from streams.rebuild import rebuild, verify

from .stubs import NotingExtractor, PaidNoting, small_pipeline

FORMER = small_pipeline()


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two documents a turn, and no pause after a trouble."""
    monkeypatch.setattr(streams.renewals, "BATCH", 2)
    monkeypatch.setattr(trouble, "PAUSES", (0.0,))


@pytest.fixture
def extractor() -> NotingExtractor:
    extractor = PaidNoting()
    extractor.fingerprint = "another"
    return extractor


@pytest.fixture
def pipeline(extractor: NotingExtractor) -> Pipeline:
    return Pipeline(FORMER.chunker, extractor, HashingEmbedder(24))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log.db") as log:
        yield log


@pytest.fixture
def home(tmp_path: Path, log: Log) -> Home:
    """Five documents in `ada` and one in `bob`, as the former settings made them."""
    home = Home(tmp_path)
    send(log, *"abcde")
    send(log, "x", namespace="bob")
    with Runner(home, log, FORMER) as runner:
        runner.drain()
    return home


def send(log: Log, *ids: str, namespace: str = "ada", text: str = "Ada Moor met Bo at {id}.") -> None:
    log.append([DocumentEvent(namespace=namespace, id=id, text=text.format(id=id)) for id in ids])


def ids(home: Home, name: str = "ada") -> set[str]:
    snapshot = Reader(home.incarnation(name)).snapshot
    return {id for id, row in snapshot.documents_by_id([*"abcdefgx"]).items() if not row.deleted}


def folders(home: Home, name: str = "ada") -> set[str]:
    return {path.name for path in (home.data / "namespaces" / name).iterdir()} - {"pointers", "understanding"}


def test_the_former_index_answers_until_its_successor_takes_over_and_nothing_is_lost(
    home: Home, log: Log, pipeline: Pipeline
) -> None:
    metrics = Metrics()
    former = home.incarnation("ada")
    before = Reader(former).snapshot.manifest
    with Runner(home, log, pipeline, metrics=metrics, renew=True) as runner:
        assert runner.step()
        assert runner.renewals.progress()["ada"] == (2, 5)
        send(log, "f")
        send(log, "a", text="Ada Moor stayed.")
        assert runner.step()
        assert home.incarnation("ada") == former and ids(home) == set("abcde")
        while "ada" in runner.renewals:
            assert runner.step()
        successor = Reader(home.incarnation("ada")).snapshot
        assert successor.manifest.fingerprint == pipeline.fingerprint
        manifests = Manifests(successor.folder / "manifests")
        first, *_ = map(manifests.read, manifests.numbers())
        assert (first.positions, first.counts.documents) == (before.positions, 5), "no earlier one can be found"
        assert not (successor.folder / UNFINISHED).exists()
        runner.drain()
        assert not runner.troubles and not runner.renewals.progress()
    assert ids(home) == set("abcdef") and ids(home, "bob") == {"x"}
    for name in ("ada", "bob"):
        assert not list(verify(home, name, pipeline))
    text = metrics.render().decode()
    assert "gistream_rebuilds_total 2.0" in text
    assert "gistream_freshness_seconds_count 2.0" in text, "what was visible before is not fresh"


def test_others_have_their_turn_meanwhile(home: Home, log: Log, pipeline: Pipeline) -> None:
    rebuild(home, "bob", pipeline)
    with Runner(home, log, pipeline, renew=True) as runner:
        send(log, "a", namespace="bob")
        runner.step()
        assert ids(home, "bob") == {"a", "x"} and "ada" in runner.renewals


def test_it_is_done_only_where_it_is_wanted(home: Home, log: Log, pipeline: Pipeline) -> None:
    send(log, "f")
    with Runner(home, log, pipeline) as runner, pytest.raises(WrongFingerprint):
        runner.drain()
    assert len(folders(home)) == 1


def test_what_was_left_is_gone_on_with_and_nothing_is_paid_twice(
    home: Home, log: Log, pipeline: Pipeline, extractor: NotingExtractor
) -> None:
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.step()
        runner.step()
    assert len(extractor.read) == 5 and "ada" in home.names(), "four of ada and that of bob"
    [unfinished] = [path for path in home.unnamed("ada") if (path / UNFINISHED).exists()]
    # Meanwhile the former settings went on.
    send(log, "c", text="")
    send(log, "g")
    with Runner(home, log, FORMER) as runner:
        runner.drain()
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.drain()
        assert not runner.renewals.progress()
    assert home.incarnation("ada") == unfinished
    assert ids(home) == set("abcdeg")
    assert len(extractor.read) == len(set(extractor.read))
    assert not list(verify(home, "ada", pipeline))


def test_one_that_is_damaged_is_not_gone_on_with(home: Home, log: Log, pipeline: Pipeline) -> None:
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.step()
    [unfinished] = home.unnamed("ada")
    for path in (unfinished / "manifests").glob("*.json"):
        path.write_text("{")
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.drain()
    assert home.incarnation("ada") != unfinished
    assert not list(verify(home, "ada", pipeline))


def test_a_model_that_is_away_is_waited_for(
    home: Home, log: Log, pipeline: Pipeline, extractor: NotingExtractor
) -> None:
    extractor.unavailable = 100
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.step()
        assert len(runner.troubles) == 2
        extractor.unavailable = 0
        runner.drain()
        assert not runner.troubles
    assert ids(home) == set("abcde")
    assert not list(verify(home, "ada", pipeline))


def test_a_document_that_the_new_settings_cannot_read_goes_to_the_dead_letters(
    home: Home, log: Log, pipeline: Pipeline, extractor: NotingExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    extract = extractor.extract

    def extracting(passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        if any("met Bo at c" in text for _, text in passages):
            raise ValueError("cannot read this")
        return extract(passages)

    monkeypatch.setattr(extractor, "extract", extracting)
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.drain()
        [letter] = runner.letters.waiting()
        assert (letter.namespace, letter.id) == ("ada", "c") and "cannot read this" in letter.reason
    assert ids(home) == set("abde")


def test_a_namespace_deleted_meanwhile_does_not_come_back(
    home: Home, log: Log, pipeline: Pipeline, extractor: NotingExtractor
) -> None:
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.step()
        home.bury("ada", {"log": log.last_position()})
        runner.drain()
        assert home.names() == ["bob"] and not runner.troubles and "ada" not in runner.renewals
    assert folders(home) == set() and not home.understanding("ada").exists()
    assert len(extractor.read) == 3, "nothing is paid for one that is gone"


def test_a_namespace_that_somebody_writes_is_waited_for(home: Home, log: Log, pipeline: Pipeline) -> None:
    opened = open_namespace(home, "ada", FORMER)
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.step()
        assert "process" in str(runner.troubles.of("ada"))
        opened.writer.close()
        runner.drain()
        assert not runner.troubles
    assert not list(verify(home, "ada", pipeline))


def test_the_former_index_is_swept_when_nobody_reads_it_any_more(
    home: Home, log: Log, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams.renewals, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(Home.sweep, "__defaults__", (0.0,))
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.step()
        while runner.renewals.progress():
            runner.step()
        assert len(folders(home)) == 2
        runner.step()
    assert len(folders(home)) == 1 == len(folders(home, "bob"))


def test_other_settings_again_begin_afresh(home: Home, log: Log, pipeline: Pipeline) -> None:
    with Runner(home, log, pipeline, renew=True) as runner:
        runner.step()
    third = replace(pipeline, embedder=HashingEmbedder(40))
    with Runner(home, log, third, renew=True) as runner:
        runner.drain()
    assert Reader(home.incarnation("ada")).snapshot.manifest.fingerprint == third.fingerprint
    assert not list(verify(home, "ada", third))
