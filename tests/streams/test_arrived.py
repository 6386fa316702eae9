"""Tests of a window as a backlog: what is fetched in whatever pieces, and again, makes the index that the log makes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streams.share
from index.compare import differences, newest_state
from index.errors import StoreError
from index.home import Home
from index.types import Accepted, DocumentEvent
from streams.applier import Applier, Pace
from streams.arrived import Arrived
from streams.local import Runner
from streams.log import Log
from streams.position import NOTHING
from streams.share import Share
from streams.window import Entry, Window
from streams.wire import namespace_partition

from .kafkaless import PARTITIONS, QUIET, REGISTER, SINCE, Stream, drain, fetch, kill
from .stubs import small_pipeline

NAMES = ("ada", "bob", "cy")
TEXTS = ("Ada Moor met Bo Larsen.", "Bo Larsen left Pier 9. Ada Moor stayed at Pier 9.", "")


def arrived(*entries: Entry) -> Arrived:
    window = Window()
    for one in entries:
        window.offer(one)
    return Arrived(window, REGISTER.understood, {0, 1})


def entry(offset: int, name: str = "ada", size: int = 10) -> Entry:
    event = DocumentEvent(namespace=name, id=str(offset), text="")
    return Entry(0, offset, size, Accepted(offset, 0, event))


def test_a_batch_is_bounded_and_never_empty() -> None:
    backlog = arrived(*(entry(offset) for offset in (2, 3, 5, 8)), entry(9, "bob"))

    def read(after: int, most_events: int, most_bytes: int) -> list[int]:
        return [one.position for one in backlog.read("ada", after, most_events, most_bytes)]

    assert read(NOTHING, 100, 1000) == [2, 3, 5, 8]
    assert read(3, 100, 1000) == [5, 8]
    assert read(NOTHING, 2, 1000) == [2, 3]
    assert read(NOTHING, 1, 1) == [2], "one at least, of whatever size"
    assert read(NOTHING, 100, 30) == [2, 3, 5]
    assert read(8, 100, 1000) == [] and backlog.read("cy", NOTHING, 1, 1) == []


def test_a_namespace_is_owned_by_its_partition_and_its_events_come_from_there() -> None:
    backlog = arrived()
    for name in map(str, range(30)):
        partition = namespace_partition(name, PARTITIONS)
        assert backlog.source(name) == f"understood-{partition}"
        assert backlog.owns(name) == (partition in (0, 1))


def test_what_is_reached_is_finished_and_what_was_not_asked_for_has_to_be_opened() -> None:
    backlog = arrived(entry(2), entry(3), entry(4), entry(7))
    assert backlog.news() == {"ada": 7} and backlog.position("ada") == NOTHING
    backlog.reached("ada", 3)
    assert backlog.position("ada") == 3
    assert [one.position for one in backlog.read("ada", 3, 9, 99)] == [4, 7]
    backlog.durable({"ada": 3})
    assert backlog.durable_positions == {"ada": 3} and not backlog.news()


def test_a_namespace_that_was_let_go_before_it_was_durable_is_asked_for_again() -> None:
    backlog = arrived(entry(2), entry(3, "bob"))
    for name, position in backlog.news().items():
        backlog.reached(name, position)
    backlog.durable({"bob": 3})
    assert backlog.news() == {"ada": 2} and backlog.position("ada") == NOTHING
    backlog.reached("ada", 2)
    assert not backlog.news() and backlog.position("ada") == 2
    backlog.durable({"ada": 2})
    assert not backlog.news()


def test_a_namespace_that_went_back_is_told_before_anything_is_applied_to_it() -> None:
    backlog = arrived(entry(2), entry(3))
    backlog.reached("ada", 2)
    with pytest.raises(StoreError, match=r"ada was at understood-\d:2 and is at 1 again"):
        backlog.read("ada", 1, 9, 99)


upserts = st.builds(
    DocumentEvent,
    namespace=st.sampled_from(NAMES[:2]),
    id=st.sampled_from("abc"),
    version=st.none() | st.integers(0, 3),
    text=st.sampled_from(TEXTS),
)
deletes = st.builds(
    DocumentEvent,
    op=st.just("delete"),
    namespace=st.sampled_from(NAMES[:2]),
    id=st.sampled_from("abc"),
    version=st.none() | st.integers(0, 3),
)
steps = st.lists(
    upserts
    | deletes
    | st.integers(0, 20)
    | st.sampled_from(["step", "step", "fetch", "fetch", "checkpoint", "crash", "power loss", "rebalance"]),
    min_size=8,
    max_size=30,
)


class Disk:
    """A data folder of which a power loss leaves only what was durable, and the ledgers, which are synced."""

    def __init__(self, data: Path) -> None:
        self.living, self.saved = data / "namespaces", data / "saved"
        self.living.mkdir(parents=True, exist_ok=True)
        self.save()

    def save(self) -> None:
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.living, self.saved)

    def power_loss(self) -> None:
        shutil.rmtree(self.living)
        shutil.copytree(self.saved, self.living)


@settings(max_examples=5)
@given(steps)
def test_it_is_the_index_that_the_log_makes(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[DocumentEvent | int | str]
) -> None:
    """Numbers are records that are stored twice, as when a worker that understands ends before it is acknowledged."""
    folder = tmp_path_factory.mktemp("case")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams.share, "ADVANCE_SECONDS", 0.0)
        stream = Stream(folder / "stream", small_pipeline())
        disk = Disk(stream.home.data)
        everything = range(PARTITIONS)
        understanding = Share(stream.understand, everything)
        share = Share(stream.apply(), everything)
        events = []
        for step in steps:
            applier: Any = share.work
            if isinstance(step, DocumentEvent):
                offset = stream.documents.event(step)
                events.append(step if step.version is not None else step.model_copy(update={"version": SINCE + offset}))
                drain(understanding, stream.documents)
            elif isinstance(step, int):
                told = [one for partition in stream.understood.partitions for one in partition]
                if told:
                    again = told[step % len(told)]
                    stream.understood.add(again.partition, again.key, again.value, list(again.headers.items()))
            elif step == "step":
                applier.step()
            elif step == "fetch":
                fetch(share, stream.understood, most=2)
            elif step == "checkpoint":
                applier.checkpoint()
                disk.save()
            else:
                if step == "rebalance":
                    share.close()
                    disk.save()
                else:
                    kill(share)
                if step == "power loss":
                    disk.power_loss()
                share = Share(stream.apply(), everything)
            share.settle()
            for partition, ledger in share.ledgers.items():
                assert ledger.position < len(stream.understood.partitions[partition])
        drain(share, stream.understood)
        share.close()
        understanding.close()
    assert not stream.box.letters
    with logged(folder / "logged", events) as home:
        for name in {event.namespace for event in events}:
            ours, theirs = (newest_state(one.incarnation(name)) for one in (stream.home, home))
            assert [str(found) for found in differences(ours, theirs)] == []


@contextmanager
def logged(folder: Path, events: Sequence[DocumentEvent]) -> Iterator[Home]:
    """The same events by way of a log, at the same moments."""
    folder.mkdir()
    moments = iter(range(SINCE, SINCE + 1000 * len(events), 1000))
    with Log(folder / "log.db", clock=lambda: next(moments)) as log:
        for event in events:
            log.append([event])
        log.clock = lambda: SINCE
        with Runner(Home(folder), log, small_pipeline()) as runner:
            runner.drain()
        yield Home(folder)


def test_a_hot_namespace_does_not_starve_others(tmp_path: Path) -> None:
    """However far behind it they stand in the same partition; counted in turns of the applier."""
    stream = Stream(tmp_path, small_pipeline())
    partition = namespace_partition("hot", PARTITIONS)
    others = [name for name in (f"n{number}" for number in range(60)) if name != "hot"]
    beside = [name for name in others if namespace_partition(name, PARTITIONS) == partition][:5]
    elsewhere = [name for name in others if namespace_partition(name, PARTITIONS) != partition][:5]
    understanding = Share(stream.understand, range(PARTITIONS))
    for number in range(5_000):
        stream.documents.event(DocumentEvent(op="delete", namespace="hot", id=str(number), version=1))
    drain(understanding, stream.documents)
    for name in (*beside, *elsewhere):
        stream.send("x", namespace=name)
    drain(understanding, stream.documents)
    understanding.close()
    share = Share(stream.apply(pace=Pace(batch_events=256, checkpoint_seconds=3600)), range(PARTITIONS))
    turns, visible, paused = 0, dict[str, int](), set[int]()
    while len(visible) < 10:
        turns += 1
        paused = (paused | share.window.full()) - share.window.roomy()
        for one in set(range(PARTITIONS)) - paused:
            _fetch_until_full(share, stream, one)
        share.work.step()  # type: ignore[attr-defined]
        share.settle()
        for name in (*beside, *elsewhere):
            if name not in visible and stream.ids(name):
                visible[name] = turns
    share.close()
    assert {visible[name] for name in elsewhere} == {1}, "another partition has nothing to wait for"
    assert max(visible.values()) <= 10, "half a window of the hot one, and then they are fetched"


def _fetch_until_full(share: Share, stream: Stream, partition: int) -> None:
    after = share.window.last(partition)
    for record in stream.understood.partitions[partition]:
        if record.offset > after:
            if partition in share.window.full():
                return
            share.take(record, None)


def test_what_was_let_go_in_trouble_is_made_durable_all_the_same(tmp_path: Path, monkeypatch: Any) -> None:
    """Otherwise the ledger stood still until the namespace gets another event."""
    monkeypatch.setattr(streams.share, "ADVANCE_SECONDS", 0.0)
    monkeypatch.setattr(streams.trouble, "PAUSES", (0.0,))
    stream = Stream(tmp_path, small_pipeline())
    stream.send("a")
    stream.send("x", namespace="bob")
    understanding, share = (Share(role, range(PARTITIONS)) for role in (stream.understand, stream.apply()))
    drain(understanding, stream.documents)
    fetch(share, stream.understood)
    applier = share.work
    assert isinstance(applier, Applier)
    applier.step()
    applier._lanes.leave("ada")
    applier.checkpoint()
    share.settle()
    ledger = share.ledgers[namespace_partition("ada", PARTITIONS)]
    assert ledger.position == NOTHING
    applier.step()
    applier.checkpoint()
    share.settle()
    assert ledger.position == 0
    share.close()
    understanding.close()


def test_a_worker_ends_where_what_it_committed_is_gone(tmp_path: Path) -> None:
    stream = Stream(tmp_path, small_pipeline())
    disk = Disk(stream.home.data)
    stream.send("a", "b")
    understanding, share = (Share(role, range(PARTITIONS)) for role in (stream.understand, stream.apply()))
    drain(understanding, stream.documents)
    drain(share, stream.understood)
    kill(share)
    disk.power_loss()
    stream.send("c")
    drain(understanding, stream.documents)
    fetch(share, stream.understood)
    with pytest.raises(StoreError, match="again"):
        share.work.step()  # type: ignore[attr-defined]
    kill(share)
    share = Share(stream.apply(pace=QUIET), range(PARTITIONS))
    drain(share, stream.understood)
    assert stream.ids() == {"a", "b", "c"}
    share.close()
    understanding.close()
