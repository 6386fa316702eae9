"""Tests of the past: any snapshot that stands is found, reached by going back, and gone with a reason when cleaned."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index import history, maintenance
from index.errors import BadRequest, NotFound, SnapshotGone, StoreError
from index.graph import rows as rows_module
from index.graph.segment import Segment, SegmentFile, read_segment
from index.history import between, find, parse_when, standing
from index.maintenance import Retention
from index.manifest import Manifest, Manifests
from index.reader import Reader

from .test_snapshot import FACTS, content
from .written import Facts, Written

NOTHING = Retention(reach=timedelta(0), every=timedelta(0))

batches = st.dictionaries(st.sampled_from("abcd"), st.none() | st.lists(st.sampled_from(FACTS), max_size=3), max_size=3)
steps = st.tuples(batches, st.sampled_from(["nothing", "refresh", "merge", "compact", "restart", "look back"]))


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written.create(tmp_path)
    for number in range(6):
        made.commit({f"d{number % 2}": [("Osprey", "met", f"Pier {number}"), ("Ada", "met", "Bo")]})
    yield made
    made.writer.close()


def commit(written: Written, batch: dict[str, Facts | None]) -> Manifest:
    gone = [id for id, facts in batch.items() if facts is None and id in written.passages]
    return written.commit({id: facts for id, facts in batch.items() if facts is not None}, gone)


@pytest.mark.parametrize("small_delta", [rows_module.SMALL_DELTA, 0], ids=["views-grow", "views-are-renewed"])
@given(steps=st.lists(steps, max_size=7))
@settings(max_examples=12)
def test_going_back_leads_to_what_was_there(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, small_delta: int, steps: list[Any]
) -> None:
    monkeypatch.setattr(rows_module, "SMALL_DELTA", small_delta)
    written = Written.create(tmp_path_factory.mktemp("live"))
    reader = Reader(written.folder)
    was = {written.writer.manifest.number: content(reader.snapshot)}
    for batch, then in steps:
        commit(written, batch)
        match then:
            case "merge":
                maintenance.merge(written.writer, fan=2)
            case "compact":
                maintenance.compact(written.writer)
            case "restart":
                written.writer.close()
                written.reopen()
            case "refresh":
                reader.refresh()
            case "look back":
                past = reader.older(reader.manifests.read(1))
                assert content(past) == was[1]
        was[written.writer.manifest.number] = content(Reader(written.folder).snapshot)
    for number in sorted(was, key=lambda number: (number % 3, number)):
        past = reader.older(reader.manifests.read(number))
        assert past.manifest.number == number
        assert content(past) == was[number]
    assert content(reader.refresh()) == was[written.writer.manifest.number]
    written.writer.close()


def test_what_both_snapshots_name_is_not_read(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(folder: Path, file: SegmentFile) -> Segment:
        read.append(file.name)
        return read_segment(folder, file)

    monkeypatch.setattr(history, "read_segment", counted)
    newest, before = written.writer.manifest, written.writer.manifests.read(written.writer.manifest.number - 2)
    there, back = between(written.folder, before, newest), between(written.folder, newest, before)
    assert read == [file.name for file in newest.segments[-2:]] * 2
    assert (there + back).entries == 0


def test_a_snapshot_is_loaded_where_the_one_held_is_gone(written: Written) -> None:
    """A reader that did not follow for longer than the retention still opens what stands."""
    reader = Reader(written.folder)
    kept = commit(written, {"d1": None})
    maintenance.merge(written.writer, fan=2)
    was = content(Reader(written.folder).snapshot)
    held = {file.name for file in reader.snapshot.manifest.segments} - {
        f.name for f in written.writer.manifest.segments
    }
    for name in held:
        (written.folder / "segments" / name).unlink()
    assert held and content(reader.older(written.writer.manifest)) == was
    with pytest.raises(StoreError, match="is missing"):
        reader.older(kept)


def test_a_moment_means_the_newest_snapshot_until_then(written: Written) -> None:
    manifests = written.writer.manifests
    kept = [manifests.read(number) for number in manifests.numbers()]
    for manifest, later in zip(kept, [*kept[1:], None], strict=True):
        assert find(manifests, manifest.number) == manifest
        assert find(manifests, manifest.time) == manifest
        if later is not None:
            assert find(manifests, later.time - timedelta(microseconds=1)) == manifest
    with pytest.raises(NotFound, match="there was no snapshot"):
        find(manifests, kept[0].time - timedelta(microseconds=1))
    with pytest.raises(NotFound, match="still to come"):
        find(manifests, datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(NotFound, match="there is no snapshot 99"):
        find(manifests, 99)


def test_beyond_the_retention_the_nearest_are_named(written: Written) -> None:
    first = written.writer.manifests.read(2)
    maintenance.clean(written.writer, NOTHING)
    with pytest.raises(SnapshotGone, match=r"snapshot 2 is beyond the retention\. the nearest that stand: 7"):
        find(written.writer.manifests, 2)
    with pytest.raises(SnapshotGone, match=r"beyond the retention\. the oldest that can be read is 7, of 2"):
        find(written.writer.manifests, first.time)


def test_a_thinned_minute_means_what_is_left_of_it(written: Written) -> None:
    manifests = written.writer.manifests
    times = {number: manifests.read(number).time for number in manifests.numbers()}
    for number in (3, 5, 6):
        manifests.remove(number)
    assert find(manifests, times[6]).number == 4
    assert find(manifests, times[3]).number == 2
    with pytest.raises(SnapshotGone, match="the nearest that stand: 4 and 7"):
        find(manifests, 6)


def test_cleaning_between_listing_and_reading_is_looked_up_again(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = written.writer.manifests
    moment = manifests.read(3).time
    stale = [manifests.numbers(), manifests.numbers()]
    for number in (3, 4):
        manifests.remove(number)
    fresh = manifests.numbers
    monkeypatch.setattr(Manifests, "numbers", lambda _: stale.pop() if stale else fresh())
    assert find(manifests, moment).number == 2


def test_what_fails_because_a_snapshot_went_says_so(written: Written) -> None:
    with pytest.raises(ValueError, match="defect"), standing(written.folder, 2, 3):
        raise ValueError("defect")
    written.writer.manifests.remove(3)
    with pytest.raises(SnapshotGone, match="snapshot 3 is beyond"), standing(written.folder, 2, 3):
        raise ValueError("a file is missing")


def test_a_snapshot_that_goes_while_it_is_opened_is_gone(written: Written) -> None:
    """Its manifest was read, then it was cleaned away: every file of it may be missing."""
    reader = Reader(written.folder)
    manifest = reader.manifests.read(3)
    maintenance.compact(written.writer)
    maintenance.clean(written.writer, NOTHING)
    with pytest.raises(SnapshotGone, match="snapshot 3 is beyond the retention"):
        reader.older(manifest)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("42", 42),
        ("2026-04-01", datetime(2026, 4, 1, tzinfo=UTC)),
        ("2026-04-01T12:00:00Z", datetime(2026, 4, 1, 12, tzinfo=UTC)),
        ("2026-04-01T12:00:00+02:00", datetime(2026, 4, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_number_or_a_moment_is_read(text: str, when: int | datetime) -> None:
    assert parse_when(text) == when


@pytest.mark.parametrize("text", ["", "yesterday", "-1", "4.5", "٤٢", "9999-12-31T23:59:59-23:00", "log:7"])
def test_anything_else_names_no_snapshot(text: str) -> None:
    with pytest.raises(BadRequest, match="names no snapshot"):
        parse_when(text)
