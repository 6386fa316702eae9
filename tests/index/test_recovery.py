"""Tests of what a crash leaves behind: the newest state that holds is found, and what came after it is taken back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from index import maintenance
from index.errors import Torn
from index.indexes import NEAREST, has_index
from index.manifest import Manifest, Manifests
from index.reader import Reader
from index.recovery import newest_holding, settle, sync_since
from index.stored import StoredVectors
from index.writer import Writer

from .written import EMBEDDER, MADE, Written

BATCHES = [{"a": [("Osprey", "met", "Bo")]}, {"b": [("Ada", "met", "Bo")]}, {"a": [("Ospreys", "left", "Ada")]}]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Three batches, as a killed process leaves them."""
    made = Written.create(tmp_path / "live")
    for batch in BATCHES:
        made.commit(batch)
    return made


def newest(written: Written) -> int:
    return newest_holding(written.folder, Manifests(written.folder / "manifests"))[0].number


def test_the_newest_holds_where_nothing_is_torn(written: Written) -> None:
    manifest, segments = newest_holding(written.folder, written.writer.manifests)
    assert manifest == written.writer.manifest
    assert list(segments) == [file.name for file in manifest.segments]
    assert not list(written.writer.manifests.torn.iterdir())


def a_manifest(written: Written) -> Path:
    return written.writer.manifests.path(4)


def a_segment(written: Written) -> Path:
    assert written.writer.manifest.delta is not None
    return written.folder / "segments" / written.writer.manifest.delta.name


def a_lance_manifest(written: Written) -> Path:
    return min((written.folder / "tables" / "facts.lance" / "_versions").glob("*.manifest"))


def a_data_file(written: Written) -> Path:
    files = (written.folder / "tables" / "passages.lance" / "data").iterdir()
    return max(files, key=lambda path: path.stat().st_mtime_ns)


def an_index(written: Written) -> Path:
    """The file that was written last of the indexes of the newest snapshot, which maintenance has just committed."""
    maintenance.index(written.writer, exact_max=0)
    files = (written.folder / "tables" / "passages.lance" / "_indices").rglob("*.idx")
    return max(files, key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.parametrize("damage", ["empty", "cut", "missing"])
def test_a_snapshot_whose_index_is_torn_is_set_aside(written: Written, tmp_path: Path, damage: str) -> None:
    path = an_index(written)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: 0 if damage == "empty" else -1])
    written.reopen()
    assert written.position == 3, "nothing but the index is lost"
    assert [torn.name for torn in written.writer.manifests.torn.iterdir()] == [f"{5:020d}.json"]
    assert maintenance.index(written.writer, exact_max=0)["passages vectors"].step == "trained"
    written.check(lambda: tmp_path / "clean")


def test_an_index_that_no_manifest_names_is_taken_back(written: Written, tmp_path: Path) -> None:
    """As when a process dies after it has indexed a table; what is committed goes on from the table without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(written.writer.manifests, "commit", die)
        with pytest.raises(SystemExit):
            maintenance.index(written.writer, exact_max=0)
    written.reopen()
    assert not has_index(written.writer.tables.dataset("passages"), NEAREST)
    written.commit({"d": [("Ada", "met", "Dee")]})
    assert maintenance.index(written.writer, exact_max=0)["passages vectors"].step == "trained"
    assert isinstance(Reader(written.folder, exact_max=0).snapshot.passages, StoredVectors)
    written.check(lambda: tmp_path / "clean")


@pytest.mark.parametrize("damage", ["empty", "cut", "missing"])
@pytest.mark.parametrize("torn", [a_manifest, a_segment, a_lance_manifest, a_data_file])
def test_a_torn_newest_snapshot_is_set_aside(
    written: Written, tmp_path: Path, torn: Callable[[Written], Path], damage: str
) -> None:
    path = torn(written)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: 0 if damage == "empty" else -1])

    written.reopen()

    # A manifest that is missing altogether was never committed as far as anyone can tell.
    unknown = torn is a_manifest and damage == "missing"
    assert written.position == 2
    assert written.writer.manifest.number == (4 if unknown else 5), "the number of a torn snapshot stays used"
    assert [path.name for path in written.writer.manifests.torn.iterdir()] == ([] if unknown else [f"{4:020d}.json"])
    # The log has the third batch again.
    written.commit(BATCHES[2])
    written.check(lambda: tmp_path / "clean")


def die(manifest: Manifest) -> bool:
    raise SystemExit


def test_rows_that_no_manifest_names_are_taken_back(written: Written, tmp_path: Path) -> None:
    """As when a process dies between its tables and its manifest, twice."""
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(written.writer.manifests, "commit", die)
            with pytest.raises(SystemExit):
                written.commit({"c": [("Osprey", "met", "Cy")]}, gone=["b"])
        written.reopen()
    written.commit({"d": [("Ada", "met", "Dee")]})
    written.check(lambda: tmp_path / "clean")


def test_where_nothing_holds_the_reason_is_given(written: Written) -> None:
    for number in written.writer.manifests.numbers():
        written.writer.manifests.path(number).write_bytes(b"")
    with pytest.raises(Torn, match=r"no snapshot of .* holds: manifest .* is damaged") as caught:
        Writer.open(written.folder, MADE, EMBEDDER.embed, take_over=True)
    assert "backup" in caught.value.hint


def test_an_older_torn_snapshot_is_left_alone(written: Written) -> None:
    written.writer.manifests.path(2).write_bytes(b"")
    assert newest(written) == 4
    assert written.writer.manifests.numbers() == [1, 2, 3, 4]


def appended(folder: Path, *numbers: int) -> Path:
    for number in numbers:
        lance.write_dataset(pa.table({"n": [number]}), str(folder / "t.lance"), mode="append")
    return folder / "t.lance" / "_versions"


@pytest.mark.parametrize("torn", [1, 2])
def test_an_unpinned_table_goes_back_to_what_opens(tmp_path: Path, torn: int) -> None:
    versions = appended(tmp_path, 1, 2, 3)
    for path in sorted(versions.glob("*.manifest"))[:torn]:
        path.write_bytes(b"")
    settle(tmp_path, "t")
    assert lance.dataset(str(tmp_path / "t.lance")).to_table()["n"].to_pylist() == [1, 2, 3][: 3 - torn]
    appended(tmp_path, 4)


def test_a_table_that_is_well_or_missing_is_not_touched(tmp_path: Path) -> None:
    settle(tmp_path, "t")
    assert not list(tmp_path.iterdir())
    before = sorted(appended(tmp_path, 1, 2).iterdir())
    settle(tmp_path, "t")
    assert sorted((tmp_path / "t.lance" / "_versions").iterdir()) == before


def test_only_what_changed_since_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    for path in (tmp_path / "old" / "file", tmp_path / "old"):
        os.utime(path, (1_000, 1_000))
    synced: set[str] = set()
    monkeypatch.setattr(os, "fsync", lambda handle: synced.add(os.readlink(f"/proc/self/fd/{handle}")))
    sync_since(tmp_path, 2_000)
    assert synced == {str(tmp_path), str(tmp_path / "new"), str(tmp_path / "new" / "file")}
    sync_since(tmp_path, 0)
    assert synced == {str(path) for path in (tmp_path, *tmp_path.rglob("*"))}
