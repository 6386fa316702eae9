"""Tests of maintenance: the same content in fewer files, and nothing removed that a kept snapshot needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index import compare, maintenance
from index.errors import SnapshotGone
from index.graph.segment import Relation, SegmentFile, total
from index.maintenance import Retention
from index.manifest import Manifest
from index.records import TABLES

from .naive import entries
from .written import Written

NOTHING = Retention(reach=timedelta(0), every=timedelta(0))
NOON = datetime(2024, 5, 31, 12, tzinfo=UTC)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written.create(tmp_path / "live")
    yield made
    made.writer.close()


def commit(written: Written, number: int) -> Manifest:
    return written.commit({f"d{number % 5}": [("Osprey", "met", f"Pier {number}"), ("Ada", "met", "Bo")]})


def test_merging_keeps_the_sum_and_bounds_the_segments(written: Written, tmp_path: Path) -> None:
    for number in range(30):
        commit(written, number)
        before = total(written.writer.segments.values())
        full = len(written.writer.segments) == 4
        assert maintenance.merge(written.writer, fan=4) == full
        after = total(written.writer.segments.values())
        for relation in Relation:
            assert entries(after[relation]) == entries(before[relation])
        assert len(written.writer.segments) < 4
        assert list(written.writer.segments) == [file.name for file in written.writer.manifest.segments]
    written.check(lambda: tmp_path / "clean")


@given(st.lists(st.integers(0, 10**7), max_size=200))
def test_segments_stay_few_however_large_they_are(sizes: list[int]) -> None:
    """The number of segments is at most one less than the fan per size class."""
    files: list[SegmentFile] = []
    for number, size in enumerate(sizes):
        files.append(SegmentFile(name=f"{number}", size=1, checksum="", entries=size))
        while full := maintenance._full_class(files, 4):
            merged = sum(file.entries for file in full)
            files = [file for file in files if file not in full]
            files.append(SegmentFile(name=f"{number}-sum", size=1, checksum="", entries=merged))
        classes = [maintenance._size_class(file) for file in files]
        assert all(classes.count(one) < 4 for one in classes)


def disk_full(manifest: Manifest) -> bool:
    raise OSError("disk full")


def test_a_merge_that_could_not_be_committed_is_done_later(written: Written, tmp_path: Path) -> None:
    for number in range(4):
        commit(written, number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(written.writer.manifests, "commit", disk_full)
        with pytest.raises(OSError, match="disk full"):
            maintenance.merge(written.writer, fan=4)
    assert maintenance.merge(written.writer, fan=4)
    commit(written, 4)
    written.check(lambda: tmp_path / "clean")


def test_compaction_keeps_the_rows_and_brings_the_indexes_up_to_date(written: Written, tmp_path: Path) -> None:
    for number in range(12):
        commit(written, number)
    before = written.state()
    for _ in range(2):
        maintenance.compact(written.writer)
        assert written.state() == before
    for name in TABLES:
        dataset = written.writer.tables.dataset(name)
        assert len(dataset.get_fragments()) == 1
        assert [index.name for index in dataset.describe_indices()] == ["key_idx"]
        assert dataset.stats.index_stats("key_idx")["num_unindexed_rows"] == 0
    commit(written, 12)
    maintenance.compact(written.writer)
    commit(written, 13)
    written.check(lambda: tmp_path / "clean")


def test_an_empty_namespace_can_be_maintained(written: Written) -> None:
    maintenance.compact(written.writer)
    assert not maintenance.merge(written.writer)
    assert maintenance.clean(written.writer, NOTHING) == 1
    commit(written, 1)


def files(written: Written) -> set[str]:
    return {str(path.relative_to(written.folder)) for path in written.folder.rglob("*") if path.is_file()}


def test_what_is_cleaned_is_what_nobody_names(written: Written, tmp_path: Path) -> None:
    """Maintenance in between: the snapshots that are kept read as before, the others are gone."""
    for number in range(16):
        commit(written, number)
        if number == 5:
            maintenance.merge(written.writer, fan=3)
        if number in (7, 12):
            maintenance.compact(written.writer)
    manifests = {number: written.writer.manifests.read(number) for number in written.writer.manifests.numbers()}
    kept = {3, 9, max(manifests)}
    states = {number: compare.state(written.folder, manifests[number]) for number in kept}
    times = {manifests[number].time for number in kept}

    class Chosen(Retention):
        def keeps(self, committed: Sequence[datetime], moment: datetime) -> list[bool]:
            return [time in times for time in committed]

    assert maintenance.clean(written.writer, Chosen()) == len(manifests) - len(kept)
    assert set(written.writer.manifests.numbers()) == kept
    for number in kept:
        assert compare.state(written.folder, written.writer.manifests.read(number)) == states[number]
    with pytest.raises(SnapshotGone):
        written.writer.manifests.read(4)

    named = {file.name for number in kept for file in (*manifests[number].segments, manifests[number].delta) if file}
    assert {path.name for path in (written.folder / "segments").iterdir()} == named
    for name in TABLES:
        versions = {version["version"] for version in written.writer.tables.dataset(name).versions()}
        assert versions == {manifests[number].tables[name] for number in kept}

    assert maintenance.clean(written.writer, Chosen()) == 0
    commit(written, 16)
    written.check(lambda: tmp_path / "clean")


def test_cleaning_everything_but_the_newest_leaves_its_files_alone(written: Written, tmp_path: Path) -> None:
    for number in range(6):
        commit(written, number)
    maintenance.compact(written.writer)
    before, size = written.state(), len(files(written))
    maintenance.clean(written.writer, NOTHING)
    assert written.state() == before
    assert len(files(written)) < size / 2
    assert written.writer.manifests.numbers() == [written.writer.manifest.number]
    written.reopen()
    commit(written, 6)
    written.check(lambda: tmp_path / "clean")


def test_files_that_a_failed_commit_left_are_cleaned_too(written: Written) -> None:
    commit(written, 0)
    orphan = written.folder / "segments" / f"{2:020d}-1-orphan.arrow"
    orphan.write_bytes(b"")
    under_way = written.folder / "segments" / f"{99:020d}-1-other.arrow"
    under_way.write_bytes(b"")
    maintenance.clean(written.writer, NOTHING)
    assert not orphan.exists()
    assert under_way.exists(), "a younger number may belong to a commit under way"


@pytest.mark.parametrize(
    ("seconds_ago", "kept"),
    [
        ([], []),
        ([0], [True]),
        ([90_000], [True]),
        ([90_000, 86_401, 0], [False, False, True]),
        ([600, 300, 1, 0], [True] * 4),
        ([661, 659, 658, 601], [True, False, False, True]),
        ([86_400, 86_399, 3_600, 3_599, 3_541, 5], [False, True, False, False, True, True]),
    ],
)
def test_all_of_ten_minutes_and_one_a_minute_of_a_day_are_kept(seconds_ago: list[int], kept: list[bool]) -> None:
    times = [NOON - timedelta(seconds=ago) for ago in seconds_ago]
    assert Retention().keeps(times, NOON) == kept


def ascending(seconds_ago: list[int]) -> list[datetime]:
    return sorted(NOON - timedelta(seconds=ago) for ago in seconds_ago)


moments = st.lists(st.integers(0, 100_000), max_size=40).map(ascending)


@given(moments, st.integers(0, 100_000), st.integers(0, 2_000))
def test_what_is_not_kept_was_not_promised(times: list[datetime], reach: int, every: int) -> None:
    retention = Retention(timedelta(seconds=reach), timedelta(seconds=every))
    kept = retention.keeps(times, NOON)
    assert len(kept) == len(times) and (not times or kept[-1])
    minutes = {time.replace(second=0) for time, keep in zip(times, kept, strict=True) if keep}
    for time, keep in zip(times, kept, strict=True):
        assert keep or NOON - time > timedelta(seconds=every)
        assert not keep or NOON - time <= timedelta(seconds=max(reach, every)) or time == times[-1]
        assert NOON - time > timedelta(seconds=reach) or time.replace(second=0) in minutes
    # Cleaning again a little later removes only what grew too old.
    left = [time for time, keep in zip(times, kept, strict=True) if keep]
    assert retention.keeps(left, NOON) == [True] * len(left)
