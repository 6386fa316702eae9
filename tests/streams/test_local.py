"""Tests of the embedded runner: everything accepted is applied once, in turns, and nothing stops the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from index import maintenance
from index import writer as writer_module
from index.errors import WriterBusy, WriterFenced, WrongFingerprint
from index.graph.segment import write_segment
from index.home import Home
from index.maintenance import Retention
from index.manifest import Manifests
from index.reader import Reader
from index.types import DocumentEvent
from index.writer import Writer
from streams import trouble
from streams.apply import Applied
from streams.chunk import WHOLE
from streams.events import decode
from streams.local import Pace, Runner
from streams.log import Log
from streams.pipeline import Pipeline
from streams.position import align
from streams.rebuild import verify

from ..support import wait_until
from .stubs import NotingExtractor, small_pipeline

QUIET = Pace(batch_events=2, checkpoint_seconds=3600, clean_seconds=3600)


class Running:
    """A data folder with its log; `runner` comes and goes."""

    def __init__(self, folder: Path, log: Log) -> None:
        self.home, self.log = Home(folder), log
        self.extractor = NotingExtractor()
        self.batches: list[tuple[str, int]] = []

    @property
    def pipeline(self) -> Pipeline:
        return small_pipeline(self.extractor)

    @contextmanager
    def runner(self, pace: Pace = QUIET) -> Iterator[Runner]:
        def note(namespace: str, applied: Applied) -> None:
            self.batches.append((namespace, applied.events))

        with Runner(self.home, self.log, self.pipeline, pace=pace, on_batch=note) as runner:
            yield runner

    def send(self, *ids: str, namespace: str = "ada", text: str = "Ada Moor met Bo Larsen.") -> None:
        self.log.append([DocumentEvent(namespace=namespace, id=id, text=f"{text} This is {id}.") for id in ids])

    def ids(self, namespace: str = "ada") -> set[str]:
        """Living documents of the newest snapshot."""
        snapshot = Reader(self.home.incarnation(namespace)).snapshot
        rows = snapshot.dataset("documents").to_table(columns=["id", "deleted"]).to_pylist()
        return {row["id"] for row in rows if not row["deleted"]}

    def waiting(self, namespace: str = "ada") -> list[str]:
        """Events that are still in the log."""
        return [accepted.event.id for accepted in self.log.read(namespace, 0, 1_000, 1 << 30)]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Log(tmp_path / "log.db") as log:
        yield Running(tmp_path, log)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (0.0,))


def test_a_log_is_applied_in_batches(running: Running) -> None:
    running.send(*"abcde")
    with running.runner() as runner:
        runner.drain()
        assert runner.step() is False
    assert running.batches == [("ada", 2), ("ada", 2), ("ada", 1)]
    assert running.ids() == set("abcde")
    assert not list(verify(running.home, "ada", running.pipeline))


def test_a_batch_has_a_bounded_size(running: Running) -> None:
    running.send(*"abc", text="x" * 1_000)
    with running.runner(Pace(batch_bytes=1_500)) as runner:
        runner.drain()
    assert running.batches == [("ada", 1)] * 3


def test_namespaces_take_turns(running: Running) -> None:
    running.send(*"abcdef")
    running.send(*"abc", namespace="bob")
    with running.runner() as runner:
        runner.drain()
    assert running.batches == [("ada", 2), ("bob", 2), ("ada", 2), ("bob", 1), ("ada", 2)]


def test_a_restarted_runner_goes_on_where_the_manifest_says(running: Running) -> None:
    running.send(*"abcd")
    with running.runner() as runner:
        runner.step()
    running.send("e")
    with running.runner() as runner:
        runner.drain()
    assert running.batches == [("ada", 2), ("ada", 2), ("ada", 1)]
    with running.runner() as runner:
        assert runner.step() is False
        assert runner.writers() == [], "nothing to do opens nothing"
    assert running.ids() == set("abcde")


def test_a_poisonous_event_goes_to_the_dead_letters_and_the_others_are_indexed(running: Running) -> None:
    running.send("a", "b")
    running.send("bad", text="This is poison.")
    running.send("c", "d", "e")
    running.send("f", namespace="bob")
    with running.runner(Pace(batch_events=100)) as runner:
        runner.drain()
        [letter] = runner.letters.waiting()
    assert running.ids() == set("abcde") and running.ids("bob") == {"f"}
    assert (letter.namespace, letter.id, letter.position, letter.step) == ("ada", "bad", 3, "apply")
    assert "cannot read poison" in letter.reason
    event = decode(letter.payload)
    assert event.id == "bad" and "poison" in event.text
    assert event.version is not None, "replayed later it must not overwrite what came after it"


def test_a_poisonous_last_event_moves_the_position_too(running: Running) -> None:
    running.send("bad", text="poison")
    with running.runner() as runner:
        runner.drain()
        assert runner.letters.count() == 1
    with running.runner() as runner:
        assert runner.step() is False
        assert runner.letters.count() == 1
    assert running.ids() == set()


def test_a_repaired_letter_is_indexed(running: Running) -> None:
    running.send("bad", text="poison")
    with running.runner() as runner:
        runner.drain()
        [letter] = runner.letters.waiting()
        repaired = decode(letter.payload).model_copy(update={"text": "Harmless."})
        runner.letters.replay(letter.number, repaired)
        runner.drain()
        assert runner.letters.count() == 0
    assert running.ids() == {"bad"}


@pytest.mark.usefixtures("no_pauses")
def test_a_model_that_does_not_answer_is_asked_again_and_nothing_is_lost(running: Running) -> None:
    running.extractor.unavailable = 3
    running.send(*"abc")
    with running.runner() as runner:
        runner.drain()
        assert runner.letters.count() == 0
    assert running.batches == [("ada", 2), ("ada", 1)]
    assert running.ids() == set("abc")


def test_while_one_namespace_waits_for_its_model_the_others_go_on(running: Running) -> None:
    running.extractor.unavailable = 1
    running.send("a")
    running.send("b", namespace="bob")
    with running.runner() as runner:
        runner.step()
        assert running.batches == [("bob", 1)]
        assert runner.step() is False, "not before its pause is over"
    with running.runner() as runner:
        runner.drain()
    assert running.ids() == {"a"}


def test_the_log_is_trimmed_only_to_what_is_durable(running: Running) -> None:
    running.send(*"abc")
    running.send("f", namespace="bob")
    with running.runner() as runner:
        runner.step()
        assert running.waiting() == ["a", "b", "c"], "committed and not on the disk yet"
        runner.checkpoint()
        assert running.waiting() == ["c"] and running.waiting("bob") == []
        assert running.log.marks() == {"ada": 2, "bob": 4}
        runner.step()
        assert running.waiting() == ["c"]
    assert running.waiting() == [], "closing makes it durable"


def test_checkpoints_come_by_themselves(running: Running) -> None:
    running.send("a")
    with running.runner(Pace(checkpoint_seconds=0)) as runner:
        runner.step()
        assert running.waiting() == []


def test_a_second_runner_is_refused(running: Running) -> None:
    with running.runner(), pytest.raises(WriterBusy), running.runner():
        pass
    with running.runner():
        pass


def test_old_events_do_not_bring_a_deleted_namespace_back(running: Running) -> None:
    running.send(*"abc")
    with running.runner() as runner:
        runner.step()
    running.home.bury("ada", {"log": running.log.last_position()})
    with running.runner() as runner:
        runner.drain()
        assert running.home.names() == []
        running.send("new")
        runner.drain()
    assert running.ids() == {"new"}
    assert Reader(running.home.incarnation("ada")).snapshot.manifest.positions == {"log": 4}


def test_its_own_thread_follows_the_log(running: Running) -> None:
    with running.runner() as runner:
        runner.start()
        running.send("a")
        wait_until(lambda: ("ada", 1) in running.batches, what="the first batch")
        running.send("b", namespace="bob")
        wait_until(lambda: ("bob", 1) in running.batches, what="the second batch")
        assert runner.error is None
    assert running.ids() == {"a"} and running.ids("bob") == {"b"}


def test_a_namespace_in_trouble_waits_and_does_not_hold_up_the_others(running: Running) -> None:
    running.send("a")
    with running.runner() as runner:
        runner.drain()
    running.send("b")
    running.send("c", namespace="bob")
    changed = replace(running.pipeline, chunker=WHOLE)
    with Runner(running.home, running.log, changed, pace=QUIET) as runner:
        runner.start()
        wait_until(lambda: "bob" in running.home.names() and running.ids("bob") == {"c"}, what="the other namespace")
        assert runner.error is None
        assert isinstance(runner.troubles.of("ada"), WrongFingerprint) and len(runner.troubles) == 1
    assert running.waiting() == ["b"], "what was accepted is still in the log"
    with Runner(running.home, running.log, changed, pace=QUIET) as runner, pytest.raises(WrongFingerprint):
        runner.drain()
    with running.runner() as runner:
        runner.drain()
        assert not runner.troubles
    assert running.ids() == {"a", "b"}


def test_who_took_over_stops_its_thread(running: Running) -> None:
    running.send("a")
    with running.runner() as runner:
        runner.start()
        wait_until(lambda: "ada" in running.home.names() and running.ids() == {"a"}, what="the first document")
        pipeline = running.pipeline
        folder = running.home.incarnation("ada")
        Writer.open(folder, pipeline.fingerprint, pipeline.embedder.embed, take_over=True).close()
        running.send("b")
        wait_until(lambda: runner.error is not None, what="the error")
        assert isinstance(runner.error, WriterFenced)
    assert running.waiting()[-1] == "b", "what was accepted is still in the log"


def test_a_full_disk_is_no_fault_of_the_event(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (0.0,))
    write, failures = write_segment, iter([OSError("disk full")] * 2)

    def write_at_last(*arguments: Any) -> Any:
        if (failure := next(failures, None)) is not None:
            raise failure
        return write(*arguments)

    monkeypatch.setattr(writer_module, "write_segment", write_at_last)
    running.send("a", "b")
    with running.runner() as runner:
        runner.step()
        assert len(runner.troubles) == 1
        while runner.step():
            pass
        assert not runner.troubles and runner.letters.count() == 0
    assert running.ids() == {"a", "b"}


def test_maintenance_that_fails_stops_nobody_else(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (0.0,))
    merge = maintenance.merge
    met: list[Writer] = []

    def merge_at_last(writer: Writer) -> bool:
        if not met:
            met.append(writer)
            raise OSError("disk full")
        return merge(writer)

    monkeypatch.setattr(maintenance, "merge", merge_at_last)
    running.send("a")
    running.send("b", namespace="bob")
    with running.runner() as runner:
        runner.step()
        assert len(runner.troubles) == 1 and met
        running.send("c")
        while runner.step():
            pass
        assert not runner.troubles
    assert running.ids() == {"a", "c"} and running.ids("bob") == {"b"}


def test_a_log_begun_anew_goes_on_behind_the_snapshots(running: Running, tmp_path: Path) -> None:
    running.send("a", "b")
    with running.runner() as runner:
        runner.drain()
    with Log(tmp_path / "other.db") as log:
        align(log, running.home)
        assert log.append([DocumentEvent(namespace="ada", id="c", text="New.")]) == ["log:3"]
        with Runner(running.home, log, running.pipeline, pace=QUIET) as runner:
            runner.drain()
    assert running.ids() == {"a", "b", "c"}


def test_a_namespace_deleted_meanwhile_is_not_written_any_more(running: Running) -> None:
    running.send("a")
    with running.runner() as runner:
        runner.drain()
        running.home.bury("ada", {"log": 1})
        running.send("b")
        runner.drain()
        assert runner.letters.count() == 0 and not runner.troubles
    assert running.ids() == {"b"}


def test_segments_are_merged_and_old_snapshots_cleaned_on_the_way(running: Running) -> None:
    for number in range(12):
        running.send(f"d{number}", f"e{number}")
    nothing = Retention(reach=timedelta(0), every=timedelta(0))
    every_time = Pace(batch_events=2, clean_seconds=0, checkpoint_seconds=0, retention=nothing)
    with running.runner(every_time) as runner:
        runner.drain()
        [writer] = runner.writers()
        assert len(writer.segments) < 8
        assert len(Manifests(writer.folder / "manifests").numbers()) <= 2
    assert not list(verify(running.home, "ada", running.pipeline))
