"""Tests of what a runner holds open: bounded, on demand, and a namespace that was let go is whole, durable and free."""

from __future__ import annotations

from pathlib import Path

import pytest

from index import recovery
from index import writer as writer_module
from index.fragments import CLASSES
from index.home import Home
from index.lock import WriterLock
from index.maintenance import Retention, uncompacted
from index.manifest import Manifests
from index.metrics import Metrics
from index.records import TABLES
from streams import lanes as lanes_module
from streams.applier import Pace
from streams.lanes import Lanes
from streams.pipeline import open_namespace
from streams.rebuild import verify

from .running import Running

TWO = Pace(batch_events=1, checkpoint_seconds=3600, clean_seconds=3600, open_namespaces=2)


def is_free(running: Running, name: str) -> bool:
    lock = WriterLock(running.home.incarnation(name) / "writer.lock")
    lock.acquire(take_over=False)
    lock.release()
    return True


def test_the_least_recently_used_is_let_go(running: Running) -> None:
    with running.runner(TWO) as runner:
        for name in ("ada", "bob", "ada", "eve"):
            running.send("a", namespace=name)
            runner.drain()
        assert [writer.folder.parent.name for writer in runner.writers()] == ["ada", "eve"]
        assert is_free(running, "bob")
        running.send("b", namespace="bob")
        runner.drain()
        assert [writer.folder.parent.name for writer in runner.writers()] == ["eve", "bob"]
    assert running.ids("bob") == {"a", "b"} and running.ids("ada") == {"a"}
    assert all(not list(verify(running.home, name, running.pipeline)) for name in ("ada", "bob", "eve"))


def test_what_is_open_has_its_turn_first(running: Running) -> None:
    """In the order of the log, each of three namespaces would be closed just before its turn."""
    with running.runner(TWO) as runner:
        for round in range(3):
            for name in ("ada", "bob", "eve"):
                running.send(f"{name}{round}", namespace=name)
            runner.step()
        served = [name for name, _ in running.batches]
    assert served == ["ada", "bob", "eve", "bob", "eve", "ada", "ada", "eve", "bob"]


def test_what_was_let_go_is_durable_and_leaves_the_log_with_the_next_checkpoint(running: Running) -> None:
    with running.runner(TWO) as runner:
        for name in ("ada", "bob", "eve"):
            running.send("a", namespace=name)
            runner.step()
        assert running.waiting("ada") == ["a"]
        runner.checkpoint()
        assert running.waiting("ada") == [] and running.log.marks() == {"ada": 1, "bob": 2, "eve": 3}


def test_one_that_cannot_be_made_durable_is_let_go_and_its_events_are_kept(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(folder: Path, moment: float) -> None:
        if folder.parent.name == "ada":
            raise OSError("disk full")
        recovery.sync_since(folder, moment)

    with running.runner(TWO) as runner:
        running.send("a")
        runner.step()
        monkeypatch.setattr(writer_module, "sync_since", fails)
        for name in ("bob", "eve"):
            running.send("a", namespace=name)
            runner.step()
        assert len(runner.writers()) == 2 and is_free(running, "ada")
        runner.checkpoint()
        assert running.waiting("ada") == ["a"] and running.waiting("bob") == []


def test_what_was_synced_is_neither_synced_nor_read_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    moments: list[float] = []
    read: list[str] = []
    monkeypatch.setattr(writer_module, "sync_since", lambda folder, moment: moments.append(moment))
    monkeypatch.setattr(recovery, "_verify", lambda folder, name, version: read.append(name))
    lanes = Lanes(
        running.home, running.pipeline, Metrics(), capacity=2, retention=Retention(), take_over=False, source=str
    )
    lanes.open("ada")
    [first] = moments
    lanes.open("ada").checkpoint()
    lanes.let_go("ada")
    lanes.open("ada").checkpoint()
    assert moments[-1] > first and read == []
    lanes.let_go("ada")
    open_namespace(running.home, "ada", running.pipeline).writer.release()
    del read[:]
    lanes.open("ada").checkpoint()
    assert moments[-1] == 0.0, "another writer was there, and may have left files that are not on the disk"
    assert read == list(TABLES), "nor what it left, after its process or the machine ended"
    lanes.close()


def test_quiet_namespaces_are_closed(running: Running) -> None:
    with running.runner(Pace(clean_seconds=0, quiet_seconds=0)) as runner:
        running.send("a")
        runner.drain()
        assert runner.writers() == []
        assert runner.watermark > 0, "what is visible stays so"
        running.send("b")
        runner.drain()
    assert running.ids() == {"a", "b"}


def test_a_namespace_that_is_opened_for_every_commit_is_kept_in_order(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its lane to remember them, neither its fragments nor its old snapshots pile up."""
    monkeypatch.setattr(lanes_module, "WORTH_CLEANING", 4)
    monkeypatch.setattr("index.maintenance.COMPACT_AFTER", 6)
    nothing = Retention(reach=Retention().reach * 0, every=Retention().every * 0)
    with running.runner(Pace(checkpoint_seconds=3600, open_namespaces=1, retention=nothing)) as runner:
        for number in range(14):
            for name in ("ada", "bob"):
                running.send(f"d{number}", namespace=name)
                runner.step()
        for name in ("ada", "bob"):
            assert len(Manifests(running.home.incarnation(name) / "manifests").numbers()) <= 8
        [writer] = runner.writers()
        assert uncompacted(writer) <= 7 < CLASSES[0]
    assert running.ids() == running.ids("bob") == {f"d{number}" for number in range(14)}
    assert not list(verify(running.home, "ada", running.pipeline))


def test_a_look_costs_what_waits_and_not_what_ever_was(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    pointer = Home.pointer

    def noted(home: Home, name: str) -> object:
        asked.append(name)
        return pointer(home, name)

    with running.runner(TWO) as runner:
        for name in ("ada", "bob", "eve", "joe"):
            running.send("a", namespace=name)
        runner.drain()
        monkeypatch.setattr(Home, "pointer", noted)
        running.send("b", namespace="joe")
        while runner.step():
            pass
    assert set(asked) == {"joe"}
