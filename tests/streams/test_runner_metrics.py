"""What a runner counts and times of itself is what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from index import fragments, maintenance
from index.errors import WriterFenced
from index.home import Home
from index.metrics import Metrics
from index.models.hashing import HashingEmbedder
from index.types import DocumentEvent, Extraction
from streams.applier import Pace
from streams.chunk import ChunkConfig
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

NO_CHECKPOINT = Pace(checkpoint_seconds=1e6)
PIPELINE = Pipeline(ChunkConfig("whole"), RulesExtractor(), HashingEmbedder(16))


def event(id: str, text: str = "Anna met Bert.", **fields: Any) -> DocumentEvent:
    return DocumentEvent(namespace="ns", id=id, text=text, **fields)


class Ticking:
    """A clock in seconds that stands still between two lines of a test."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> int:
        return round(self.seconds * 1e6)


class Running:
    """A runner over a temporary folder, its clock, and what it has measured."""

    def __init__(self, log: Log, runner: Runner, metrics: Metrics, clock: Ticking) -> None:
        self.log, self.runner, self.clock = log, runner, clock
        self._metrics = metrics

    def apply(self, *events: DocumentEvent) -> None:
        self.log.append(events)
        self.runner.step()

    def __getitem__(self, name: str) -> float:
        """The value of `name`, or of `name{label=value}`; 0 where nothing was measured yet."""
        families = text_string_to_metric_families(self._metrics.render().decode())
        for sample in (sample for family in families for sample in family.samples):
            labels = ",".join(f"{key}={value}" for key, value in sample.labels.items())
            if name == sample.name + (f"{{{labels}}}" if labels else ""):
                return float(sample.value)
        return 0.0


@contextmanager
def running(folder: Path, pace: Pace = NO_CHECKPOINT) -> Iterator[Running]:
    clock, metrics = Ticking(), Metrics()
    with (
        Log(folder / "log.db", clock=clock) as log,
        Runner(Home(folder), log, PIPELINE, pace=pace, metrics=metrics) as runner,
    ):
        yield Running(log, runner, metrics, clock)


def test_every_event_and_passage_is_counted_once(tmp_path: Path) -> None:
    with running(tmp_path) as ns:
        ns.apply(event("a", version=5), event("b", version=5))
        ns.apply(event("a", version=4), event("b", version=6, metadata={"colour": "red"}), event("c"))
        assert ns["gistream_commits_total"] == 2
        assert ns["gistream_commit_seconds_count"] == 2
        assert 0 < ns["gistream_commit_seconds_sum"] < 60
        assert ns["gistream_batch_documents_sum"] == 5
        assert ns["gistream_events_superseded_total"] == 1
        assert ns["gistream_passages_extracted_total"] == 3
        assert ns["gistream_passages_reused_total"] == 1


def test_freshness_is_from_acceptance_to_commit_for_every_event(tmp_path: Path) -> None:
    with running(tmp_path) as ns:
        ns.log.append([event("a")])
        ns.clock.seconds += 7
        ns.log.append([event("b")])
        ns.clock.seconds += 2
        ns.runner.step()
        assert ns["gistream_freshness_seconds_count"] == 2
        assert ns["gistream_freshness_seconds_sum"] == pytest.approx(9 + 2)
        ns.log.append([event("c")])
        ns.clock.seconds -= 100
        ns.runner.step()
        assert ns["gistream_freshness_seconds_sum"] == pytest.approx(9 + 2), "a clock that is set back adds nothing"


def test_upkeep_is_timed_where_there_was_something_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "COMPACT_AFTER", fragments.FAN + 1)
    with running(tmp_path, Pace(checkpoint_seconds=1e6, clean_seconds=0, exact_max=0)) as ns:
        for number in range(fragments.FAN):
            assert ns["gistream_maintenance_seconds_count{task=merge}"] == 0
            ns.apply(event(str(number)))
        assert ns["gistream_maintenance_seconds_count{task=merge}"] == 1
        assert ns["gistream_maintenance_seconds_count{task=compact}"] == 0
        for id in ("last", "one more"):
            ns.apply(event(id))
        assert ns["gistream_maintenance_seconds_count{task=compact}"] == 1
        assert ns["gistream_maintenance_seconds_count{task=index}"] == 1
        assert ns["gistream_rows_indexed_total{index=passages vectors,step=trained}"] == fragments.FAN + 1
        assert ns["gistream_rows_indexed_total{index=passages vectors,step=added}"] == 0
        assert ns["gistream_maintenance_seconds_count{task=clean}"] == fragments.FAN + 2
        ns.runner.checkpoint()
        ns.runner.checkpoint()
        assert ns["gistream_checkpoint_seconds_count"] == 1


def test_an_event_that_cannot_be_indexed_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extract = RulesExtractor.extract

    def brittle(self: RulesExtractor, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        if any("poison" in text for _, text in passages):
            raise ZeroDivisionError
        return extract(self, passages)

    monkeypatch.setattr(RulesExtractor, "extract", brittle)
    with running(tmp_path) as ns:
        ns.apply(event("a"), event("b", "poison"), event("c"))
        assert ns["gistream_events_dead_lettered_total{step=apply}"] == ns.runner.letters.count() == 1
        assert ns["gistream_batch_documents_sum"] == 2
        assert ns["gistream_freshness_seconds_count"] == 2
        assert ns["gistream_commits_total"] == 3, "the first, the one that skips the second, the third"


def test_a_writer_that_is_fenced_is_counted(tmp_path: Path) -> None:
    with running(tmp_path) as ns:
        ns.apply(event("a"))
        with Log(tmp_path / "log.db") as log, Runner(Home(tmp_path), log, PIPELINE, take_over=True) as second:
            log.append([event("b")])
            second.drain()
        with pytest.raises(WriterFenced):
            ns.apply(event("c"))
        assert ns["gistream_writers_fenced_total"] == 1
