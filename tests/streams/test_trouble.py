"""Tests of what can go wrong with one event or one namespace: it costs nothing, and it stops nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from index import maintenance
from index import writer as writer_module
from index.errors import WrongFingerprint
from index.graph.segment import write_segment
from index.writer import Writer
from streams import trouble
from streams.applier import Pace
from streams.chunk import WHOLE
from streams.events import decode
from streams.local import Runner

from ..support import wait_until
from .running import QUIET, Running


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


def test_while_one_namespace_waits_for_its_model_the_others_go_on(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (3600.0,))
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
