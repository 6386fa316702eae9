"""Tests of the tables: every operation makes exactly the next version, and nothing else may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest

from index import tables as tables_module
from index.records import TABLES, documents
from index.tables import Tables, VersionGap, key_filter, open_dataset, read_rows
from index.types import Document, Key

from .written import MADE


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    made = Tables(tmp_path / "tables", MADE)
    made.create()
    return made


def rows(tables: Tables, *ids: str) -> pa.Table:
    return documents([Document(id, 1, False, "", id, "{}", None, 1, ()) for id in ids], tables.schemas["documents"])


def keys_of(table: pa.Table) -> list[Key]:
    found: list[Key] = table["key"].to_pylist()
    return found


def ids(tables: Tables) -> set[str]:
    return set(tables.dataset("documents").to_table()["id"].to_pylist())


def test_every_operation_makes_the_next_version(tables: Tables) -> None:
    first = tables.versions["documents"]
    new = rows(tables, "a", "b", "c")
    tables.add("documents", new)
    tables.delete("documents", keys_of(new)[:2])
    assert tables.versions["documents"] == first + 2 == tables.versions_on_disk("documents")[-1]
    assert ids(tables) == {"c"}
    tables.add("documents", new.slice(0, 0))
    tables.delete("documents", [])
    assert tables.versions["documents"] == first + 2, "nothing to do makes no version"


def test_long_lists_of_keys_are_read_and_deleted_in_parts(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "KEYS_PER_FILTER", 2)
    new = rows(tables, *"abcdefg")
    tables.add("documents", new)
    wanted = keys_of(new)[1:6]
    assert sorted(row["id"] for row in tables.read("documents", wanted)) == list("bcdef")
    assert [set(row) for row in tables.read("documents", wanted[:1], ["id"])] == [{"id"}]
    tables.delete("documents", wanted)
    assert ids(tables) == {"a", "g"}


def foreign_append(folder: Path, new: pa.Table) -> None:
    lancedb.connect(str(folder)).open_table("documents").add(new)


def foreign_restore(folder: Path, new: pa.Table) -> None:
    table = lancedb.connect(str(folder)).open_table("documents")
    table.checkout(1)
    table.restore()


@pytest.mark.parametrize("foreign", [foreign_append, foreign_restore])
@pytest.mark.parametrize("operation", ["add", "delete"])
def test_a_foreign_write_is_a_gap(tables: Tables, foreign: Callable[[Path, pa.Table], None], operation: str) -> None:
    new = rows(tables, "a")
    tables.add("documents", new)
    foreign(tables.folder, rows(tables, "foreign"))
    with pytest.raises(VersionGap, match="documents"):
        if operation == "add":
            tables.add("documents", rows(tables, "b"))
        else:
            tables.delete("documents", keys_of(new))


def test_opening_takes_back_what_came_after(tables: Tables) -> None:
    tables.add("documents", rows(tables, "a"))
    committed = dict(tables.versions)
    tables.add("documents", rows(tables, "b"))
    foreign_append(tables.folder, rows(tables, "foreign"))
    again = Tables(tables.folder, MADE)
    again.open(committed)
    assert ids(again) == {"a"}
    assert again.versions["documents"] == committed["documents"] + 3, "taking back is a version of its own"
    assert {name: again.versions[name] for name in TABLES if name != "documents"} == {
        name: committed[name] for name in TABLES if name != "documents"
    }
    again.add("documents", rows(again, "c"))
    assert ids(again) == {"a", "c"}


def test_a_pinned_dataset_does_not_move(tables: Tables) -> None:
    tables.add("documents", rows(tables, "a"))
    pinned = open_dataset(tables.folder, "documents", tables.versions["documents"])
    key = keys_of(rows(tables, "a"))
    tables.delete("documents", key)
    assert [row["id"] for row in read_rows(pinned, key)] == ["a"]
    assert tables.read("documents", key) == []


def test_maintenance_is_adopted_only_where_no_row_came_or_went(tables: Tables) -> None:
    for id in "abc":
        tables.add("documents", rows(tables, id))
    dataset: Any = tables.dataset("documents")
    dataset.optimize.compact_files()
    tables.adopt("documents", dataset, 3)
    assert tables.versions["documents"] == tables.versions_on_disk("documents")[-1]
    tables.add("documents", rows(tables, "d"))
    assert ids(tables) == set("abcd")

    dataset = tables.dataset("documents")
    foreign_append(tables.folder, rows(tables, "foreign"))
    with pytest.raises(VersionGap, match="maintenance"):
        tables.adopt("documents", dataset, 4)


def test_other_errors_of_the_store_are_not_mistaken_for_a_race(tables: Tables) -> None:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        tables.add("documents", pa.table({"wrong": [1]}))
    assert not isinstance(caught.value, VersionGap)


def test_keys_are_written_as_the_store_reads_them(tmp_path: Path) -> None:
    wanted, other = b"\0'\xff" + bytes(13), bytes(16)
    table = pa.table({"key": pa.array([wanted, other], pa.binary(16))})
    dataset = lance.write_dataset(table, str(tmp_path / "t.lance"))
    assert dataset.to_table(filter=key_filter([wanted]))["key"].to_pylist() == [wanted]


@pytest.mark.parametrize("wanted", [1, 3, 40], ids=["looked-for", "some-of-them-gone", "read-whole"])
def test_rows_are_found_among_given_fragments_only(tables: Tables, wanted: int) -> None:
    old, new = rows(tables, *(f"o{n}" for n in range(50))), rows(tables, *(f"n{n}" for n in range(50)))
    tables.add("documents", old)
    known = {fragment.fragment_id for fragment in tables.dataset("documents").get_fragments()}
    tables.add("documents", new)
    tables.delete("documents", keys_of(new)[::7])
    dataset = tables.dataset("documents")
    fresh = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id not in known]
    asked = [*keys_of(new)[:wanted], *keys_of(old)[:2]]
    found = tables_module.read_among(dataset, fresh, asked, ["id", "key"])
    assert set(found["id"].to_pylist()) == {f"n{n}" for n in range(wanted) if n % 7}
    assert set(found.column_names) == {"id", "key"}
    assert tables_module.read_among(dataset, [], asked, ["id", "key"]).num_rows == 0


def test_writers_share_what_they_keep_of_their_tables(tmp_path: Path) -> None:
    """Each would have a cache of its own otherwise, which holds a gigabyte before it lets go of anything."""
    shared = tables_module._writing_session()
    for name in ("one", "other"):
        before = shared.approx_num_items
        made = Tables(tmp_path / name, MADE)
        made.create()
        made.add("documents", rows(made, "a"))
        assert shared.approx_num_items > before
