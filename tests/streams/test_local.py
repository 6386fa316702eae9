"""Tests of the embedded runner: everything accepted is applied once, and in turns."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from index.errors import WriterBusy, WriterFenced
from index.maintenance import Retention
from index.manifest import Manifests
from index.reader import Reader
from index.types import DocumentEvent
from index.writer import Writer
from streams.applier import Pace
from streams.local import Runner
from streams.log import Log
from streams.position import align
from streams.rebuild import verify

from ..support import wait_until
from .running import QUIET, Running


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
