"""Tests of the writer: a batch is visible whole or not at all, and what failed leaves no trace in what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from index import writer as writer_module
from index.errors import ModelUnavailable, StoreError, TablesMoved, Torn, WriterBusy, WriterFenced, WrongFingerprint
from index.manifest import Counts, Manifests
from index.plan import Changes
from index.records import TABLES
from index.types import Document
from index.writer import ATTEMPTS, Writer

from .written import EMBEDDER, MADE, Written

FIRST = {"a": [("Osprey", "met", "Bo")], "b": [("Ospreys", "met", "Bo"), ("Ada", "saw", "Bo")]}
SECOND = {"b": [("Osprey", "left", "Ada")], "c": [("Osprey III", "met", "Bo")]}


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written.create(tmp_path / "live")
    yield made
    made.writer.close()


def test_a_new_namespace_is_empty_and_has_a_snapshot(written: Written) -> None:
    manifest = written.writer.manifest
    assert (manifest.number, manifest.epoch, manifest.cause, manifest.segments) == (1, 1, "open", ())
    assert manifest.counts == Counts() and manifest.positions == {}
    assert written.writer.manifests.read(1) == manifest


def test_a_commit_carries_everything_that_follows_from_it(written: Written, tmp_path: Path) -> None:
    manifest = written.commit(FIRST)
    assert manifest.number == 2
    assert manifest.counts == Counts(documents=2, passages=2, entities=4, facts=3)
    assert (manifest.positions, manifest.watermark, manifest.newest_event_time) == ({"log": 1}, 1, None)
    assert manifest.delta is not None and manifest.segments == (manifest.delta,)
    assert manifest.parent == written.writer.manifests.read(1).checksum
    assert written.writer.documents(["a", "b", "a", "zz"]) == {id: written.documents[id] for id in "ab"}
    held = {passage.key: passage for passage in written.passages.values()}
    assert written.writer.passages([*held, bytes(16)]) == held
    written.commit(SECOND, gone=["a"])
    written.check(lambda: tmp_path / "clean")


def test_watermark_event_time_and_other_sources_never_go_back(written: Written) -> None:
    dated = written.changes({"a": []})
    [row] = dated.documents

    def at(moment: int | None) -> Changes:
        rows = [Document(row.id, 1, False, "", "", "{}", moment, 1, ())]
        return Changes(documents=rows, replaced=rows)

    written.writer.commit(at(500), {"log": 3, "feed": 9}, 70)
    manifest = written.writer.commit(at(-4), {"log": 4}, 60)
    assert manifest.positions == {"log": 4, "feed": 9}
    assert (manifest.watermark, manifest.newest_event_time) == (70, 500)
    assert written.writer.commit(at(None), {"log": 5}, 80).newest_event_time == 500


def test_an_empty_batch_moves_the_position_and_nothing_else(written: Written) -> None:
    before = written.commit(FIRST)
    after = written.writer.commit(Changes(), {"log": 9}, 9)
    assert after.positions == {"log": 9} and after.delta is None
    assert (after.tables, after.segments, after.counts) == (before.tables, before.segments, before.counts)


@contextmanager
def failing(target: Any, name: str, error: Exception, *, after: int = 0) -> Iterator[None]:
    """Let the calls of a method after the first `after` raise."""
    real: Callable[..., Any] = getattr(target, name)
    calls = 0

    def call(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise error
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, name, call)
        yield


FAILURES: dict[str, Callable[[Writer], Any]] = {
    "embedding": lambda writer: failing(writer, "_embed", ModelUnavailable("no answer")),
    "first-delete": lambda writer: failing(writer.tables, "delete", OSError("disk full")),
    "second-table": lambda writer: failing(writer.tables, "add", OSError("disk full"), after=1),
    "segment": lambda writer: failing(writer_module, "write_segment", OSError("disk full")),
    "manifest": lambda writer: failing(writer.manifests, "commit", OSError("disk full")),
}


@pytest.mark.parametrize("where", FAILURES)
def test_a_batch_that_fails_is_invisible_and_the_next_one_is_right(
    written: Written, tmp_path: Path, where: str
) -> None:
    """The same batch tried again, and another one instead: both give what a clean index holds."""
    written.commit(FIRST)
    before = written.state()
    for put in (SECOND, {"d": [("Osprey", "sank", "Pier 9")]}):
        with FAILURES[where](written.writer), pytest.raises((StoreError, ModelUnavailable)):
            written.commit(put, gone=["a"])
        assert written.state() == before
        assert written.writer.documents([*"abcd"]) == written.documents
        keys = [passage.key for passage in written.changes(put).added]
        assert written.writer.passages(keys) == {}
    written.commit({"e": [("Ospreys", "left", "Pier 9")]})
    written.commit(SECOND, gone=["a"])
    written.check(lambda: tmp_path / "clean")


def foreign_append(folder: Path, table: str) -> None:
    """Another program adds a row of its own to a table."""
    opened = lancedb.connect(str(folder / "tables")).open_table(table)
    nothing = {field.name: [None] for field in opened.schema}
    opened.add(pa.table(nothing, schema=opened.schema))


@pytest.mark.parametrize("table", TABLES)
def test_a_foreign_row_is_taken_back_and_the_batch_written_again(written: Written, tmp_path: Path, table: str) -> None:
    written.commit(FIRST)
    foreign_append(written.folder, table)
    written.commit(SECOND, gone=["a"])
    written.check(lambda: tmp_path / "clean")


def test_a_table_that_never_holds_still_ends_with_the_remedy(written: Written) -> None:
    written.commit(FIRST)
    before = written.state()
    add, meddled = written.writer.tables.add, 0

    def meddle(name: Any, rows: Any) -> None:
        nonlocal meddled
        if name == "passages":
            meddled += 1
            foreign_append(written.folder, name)
        add(name, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(written.writer.tables, "add", meddle)
        with pytest.raises(TablesMoved, match="passages") as caught:
            written.commit(SECOND)
    assert meddled == ATTEMPTS
    assert "stop it" in caught.value.hint
    assert written.state() == before


def test_opening_fences_the_former_writer_before_anything_else(written: Written) -> None:
    written.commit(FIRST)
    first = written.writer
    written.reopen()
    opened = written.writer.manifest
    assert (opened.number, opened.epoch, opened.cause) == (3, 2, "open")
    assert opened.counts == first.manifest.counts
    with pytest.raises(WriterFenced, match="took over"):
        first.commit(written.changes(SECOND), {"log": 2}, 2)
    first.close()


def test_a_fenced_writer_whose_tables_moved_stops_before_it_restores_them(written: Written, tmp_path: Path) -> None:
    written.commit(FIRST)
    first, changes = written.writer, written.changes(SECOND)
    written.reopen()
    written.commit({"d": [("Osprey", "sank", "Pier 9")]})

    def restores(versions: object) -> None:
        pytest.fail("a writer that was fenced took the tables back under its successor")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first.tables, "open", restores)
        with pytest.raises(WriterFenced, match="took over"):
            first.commit(changes, {"log": 9}, 9)
    first.close()
    written.commit(SECOND, gone=["a"])
    written.check(lambda: tmp_path / "clean")


def test_an_index_made_otherwise_is_not_opened_and_not_fenced(written: Written) -> None:
    written.commit(FIRST)
    other = MADE.model_copy(update={"extractor": "another"})
    with pytest.raises(WrongFingerprint, match="extractor is 'given' and not 'another'"):
        Writer.open(written.folder, other, EMBEDDER.embed, take_over=True)
    written.commit(SECOND)


def test_a_second_writer_is_told_until_the_first_one_closes(written: Written) -> None:
    with pytest.raises(WriterBusy):
        Writer.open(written.folder, MADE, EMBEDDER.embed)
    written.writer.close()
    written.writer = Writer.open(written.folder, MADE, EMBEDDER.embed)


def test_a_refused_opening_lets_go_of_the_lock(written: Written) -> None:
    written.writer.close()
    other = MADE.model_copy(update={"chunker": "another"})
    for _ in range(2):
        with pytest.raises(WrongFingerprint):
            Writer.open(written.folder, other, EMBEDDER.embed)
    written.writer = Writer.open(written.folder, MADE, EMBEDDER.embed)


def test_creating_over_an_index_is_refused_and_harms_it_not(written: Written) -> None:
    written.commit(FIRST)
    before = written.state()
    written.writer.close()
    with pytest.raises(WriterFenced, match="already holds"):
        Writer.create(written.folder, MADE, EMBEDDER.embed)
    assert written.state() == before
    written.writer = Writer.open(written.folder, MADE, EMBEDDER.embed)
    written.commit(SECOND)


def test_a_folder_without_manifests_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(Torn, match="no manifest"):
        Writer.open(tmp_path, MADE, EMBEDDER.embed)


def test_a_reopened_writer_keeps_aliases_of_entities_it_never_saw_born(written: Written, tmp_path: Path) -> None:
    written.commit(FIRST)
    written.reopen()
    written.commit(SECOND)
    written.commit({}, gone=["a", "b"])
    written.check(lambda: tmp_path / "clean")


def test_a_checkpoint_tells_which_positions_are_durable(written: Written) -> None:
    written.commit(FIRST)
    assert written.writer.checkpoint() == {"log": 1}
    written.commit(SECOND)
    assert written.writer.checkpoint() == {"log": 2}


def test_the_embedder_is_asked_once_a_commit(tmp_path: Path) -> None:
    calls: list[int] = []

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        calls.append(len(texts))
        return EMBEDDER.embed(texts)

    written = Written.create(tmp_path, embed)
    written.commit(FIRST)
    assert calls == [2 + 3 + 4], "passages, facts, and the names that aliases compare"
    assert Manifests(tmp_path / "manifests").numbers() == [1, 2]
    written.writer.close()
