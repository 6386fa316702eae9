"""Tests of the reader: every way to the newest snapshot ends at the same one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from index import maintenance
from index import reader as reader_module
from index.errors import NotYet
from index.graph.segment import Segment, SegmentFile, read_segment
from index.maintenance import Retention
from index.reader import Reader

from .test_snapshot import content
from .written import Written


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written.create(tmp_path)
    commit(made, 0)
    yield made
    made.writer.close()


def commit(written: Written, number: int) -> None:
    facts = [("Osprey", "met", f"Pier {number}"), ("Ada", "met", "Bo")]
    written.commit({f"d{number % 3}": facts}, gone=[f"d{(number + 1) % 3}"] if number % 4 == 3 else [])


class ThirdAndNewest(Retention):
    """Keeps the third snapshot and the newest."""

    def keeps(self, times: Sequence[datetime], moment: datetime) -> list[bool]:
        return [place in (2, len(times) - 1) for place in range(len(times))]


def restart(written: Written) -> None:
    written.reopen()


def compact(written: Written) -> None:
    maintenance.compact(written.writer)


def merge(written: Written) -> None:
    maintenance.merge(written.writer, fan=2)


def clean(written: Written) -> None:
    maintenance.clean(written.writer, Retention(reach=timedelta(0), every=timedelta(0)))


def lose_the_newest(written: Written) -> None:
    """As after a power loss: the newest manifest is torn, and a writer goes back behind what readers have seen."""
    written.writer.manifests.path(written.writer.manifest.number).write_bytes(b"")
    written.reopen()


@pytest.mark.parametrize("happens", [restart, compact, merge, clean, lose_the_newest])
@pytest.mark.parametrize("batches_before", [0, 3])
def test_one_refresh_reaches_the_newest_over_whatever_happened(
    written: Written, happens: Callable[[Written], None], batches_before: int
) -> None:
    reader = Reader(written.folder)
    for number in range(1, 1 + batches_before):
        commit(written, number)
    happens(written)
    commit(written, 7)
    commit(written, 8)
    snapshot = reader.refresh()
    assert snapshot.manifest == written.writer.manifest
    assert content(snapshot) == content(Reader(written.folder).snapshot)


def test_one_refresh_reaches_the_newest_where_only_some_snapshots_between_are_left(written: Written) -> None:
    reader = Reader(written.folder)
    for number in range(1, 6):
        commit(written, number)
    maintenance.clean(written.writer, ThirdAndNewest())
    assert written.writer.manifests.numbers() == [reader.snapshot.manifest.number + 1, written.writer.manifest.number]
    assert reader.refresh().manifest == written.writer.manifest


def test_a_snapshot_that_a_torn_manifest_named_is_left(written: Written) -> None:
    """The number that the reader holds never comes again with another content."""
    commit(written, 1)
    reader = Reader(written.folder)
    held = reader.snapshot
    lose_the_newest(written)
    commit(written, 2)
    snapshot = reader.refresh()
    assert snapshot.manifest.number > held.manifest.number
    assert content(snapshot) == content(Reader(written.folder).snapshot)


def test_following_reads_deltas_and_not_the_whole(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(written.folder)
    read: list[str] = []

    def counted(folder: Path, file: SegmentFile) -> Segment:
        read.append(file.name)
        return read_segment(folder, file)

    monkeypatch.setattr(reader_module, "read_segment", counted)
    for number in range(1, 4):
        commit(written, number)
    reader.refresh()
    reader.refresh()
    assert read == [file.name for file in written.writer.manifest.segments[-3:]]
    assert reader.snapshot.kinds is reader.refresh().kinds


def test_nothing_new_is_the_same_snapshot(written: Written) -> None:
    reader = Reader(written.folder)
    assert reader.refresh() is reader.refresh() is reader.snapshot


def test_waiting_ends_with_the_event(written: Written) -> None:
    reader = Reader(written.folder)
    assert reader.wait_for("log", 1, timeout=0).manifest.positions == {"log": 1}
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(reader.wait_for("log", 3, timeout=30).manifest.number))
    waiting.start()
    commit(written, 1)
    commit(written, 2)
    waiting.join()
    assert found == [written.writer.manifest.number]


def test_waiting_in_vain_says_how_far_it_is(written: Written) -> None:
    reader = Reader(written.folder)
    with pytest.raises(NotYet, match=r"event 5 is not visible after 0\.01 s; snapshot 2 is at 1") as caught:
        reader.wait_for("log", 5, timeout=0.01)
    assert caught.value.recoverable
    with pytest.raises(NotYet, match="is at no event of it"):
        reader.wait_for("another source", 1, timeout=0)


def test_many_readers_of_one_folder_refresh_at_once(written: Written) -> None:
    reader = Reader(written.folder)
    stop, errors = threading.Event(), list[BaseException]()

    def refresh() -> None:
        number = 0
        try:
            while not stop.is_set():
                snapshot = reader.refresh()
                assert snapshot.manifest.number >= number
                number = snapshot.manifest.number
                assert snapshot.passages.n_live == snapshot.manifest.counts.passages
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=refresh) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 12):
        commit(written, number)
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert reader.refresh().manifest == written.writer.manifest
