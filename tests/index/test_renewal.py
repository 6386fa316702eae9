"""Tests of renewal: whatever is made anew behind the questions, and whenever it is adopted, snapshots stay the same."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index import renewal as renewal_module
from index import vectors as vectors_module
from index.graph import rows as rows_module
from index.graph.rows import SparseRows
from index.reader import Reader
from index.renewal import Renewal, views

from ..support import wait_until
from .test_snapshot import batches, content
from .written import Facts, Written


@pytest.fixture(autouse=True)
def everything_is_worn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "SMALL_DELTA", 0)
    monkeypatch.setattr(vectors_module, "_LARGE", 0)
    monkeypatch.setattr(vectors_module, "_FIRST_CAPACITY", 4)


def finished(renewal: Renewal) -> None:
    wait_until(lambda: renewal._of is None or renewal._made.done(), what="the renewal")


@given(st.lists(st.tuples(batches, st.sampled_from(["adopt", "go on", "load"])), max_size=8))
@settings(max_examples=12, deadline=None)
def test_a_snapshot_upon_what_was_renewed_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[dict[str, Facts | None], str]]
) -> None:
    written = Written.create(tmp_path_factory.mktemp("history"))
    reader = Reader(written.folder)
    held = []
    for batch, then in history:
        put = {id: facts for id, facts in batch.items() if facts is not None}
        written.commit(put, gone=[id for id in batch if id not in put])
        if then == "load":
            reader = Reader(written.folder)
        elif then == "adopt":
            finished(reader._renewal)
        snapshot = reader.refresh()
        held.append((snapshot, content(snapshot)))
        assert held[-1][1] == content(Reader(written.folder).snapshot)
    for snapshot, before in held:
        assert content(snapshot) == before
    written.writer.close()


def test_a_reader_renews_while_it_swaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, renewed = threading.Event(), SparseRows.renewed

    def renewed_at_last(self: SparseRows) -> SparseRows:
        assert go.wait(timeout=30)
        return renewed(self)

    monkeypatch.setattr(SparseRows, "renewed", renewed_at_last)
    written = Written.create(tmp_path)
    written.commit({"a": [("Osprey", "met", "Bo")]})
    reader = Reader(tmp_path)
    for number in range(4):
        written.commit({f"b{number}": [("Ada", "met", f"Pier {number}")]})
        reader.refresh()
    waiting = reader.snapshot.graph
    assert waiting.n_delta > waiting.n_base, "swaps do not wait"
    go.set()
    finished(reader._renewal)
    written.commit({"c": [("Ada", "saw", "Bo")]})
    snapshot = reader.refresh()
    assert snapshot.graph.n_base > waiting.n_base
    assert content(snapshot) == content(Reader(tmp_path).snapshot)
    written.writer.close()


def test_numbers_of_what_is_gone_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewal_module, "FEW_DEAD", 0)
    written = Written.create(tmp_path)
    written.commit({"a": [("Osprey", "met", "Bo")]})
    reader = Reader(tmp_path)
    first, given = reader.snapshot, []
    for number in range(40):
        written.commit({"a": [(f"Osprey {number}", "met", "Bo")]})
        if number == 20:
            written.commit({"b": [("Ada", "met", "Bo")]})
        finished(reader._renewal)
        snapshot = reader.refresh()
        assert snapshot.manifest == written.writer.manifest
        given.append(len(snapshot.kinds.entities))
    assert max(given) <= 8, "of at most 4 that live"
    assert content(snapshot) == content(Reader(tmp_path).snapshot)
    assert len(first.passage_rows(first.live_passages.tolist())) == 1, "an old snapshot keeps its numbers"
    written.writer.close()


def test_what_stops_a_renewal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: SparseRows) -> SparseRows:
        raise MemoryError("no room")

    written = Written.create(tmp_path)
    written.commit({"a": [("Osprey", "met", "Bo")]})
    reader = Reader(tmp_path)
    monkeypatch.setattr(SparseRows, "renewed", fails)
    written.commit({"b": [("Ada", "met", "Pier 9")]})
    reader.refresh()
    finished(reader._renewal)
    with pytest.raises(MemoryError):
        reader.refresh()
    written.writer.close()


def test_every_kind_of_view_is_renewed(tmp_path: Path) -> None:
    written = Written.create(tmp_path)
    own = {"graph", "postings", "supports", "passages", "facts"}
    spoken = {f"spoken.{name}" for name in ("vectors", "said", "named", "having", "titles", "title_words")}
    assert set(views(Reader(tmp_path).snapshot)) == own | spoken
    written.writer.close()
