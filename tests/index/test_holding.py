"""What a reader holds in memory and what it leaves in the tables: it crosses over both ways, and not too often."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from index import maintenance
from index.maintenance import Retention
from index.reader import Reader
from index.stored import StoredVectors
from index.vectors import VectorTable

from .written import EMBEDDER, Written

EXACT_MAX = 8
QUESTION = EMBEDDER.embed(["Who met the Osprey at Pier 3?"])[0].astype("float64")


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written.create(tmp_path)
    yield made
    made.writer.close()


def grow(written: Written, first: int, last: int) -> None:
    written.commit({f"d{number}": [("Osprey", "met", f"Pier {number}")] for number in range(first, last)})


def shrink(written: Written, first: int, last: int) -> None:
    written.commit({}, gone=[f"d{number}" for number in range(first, last)])


def places(reader: Reader) -> tuple[type, type]:
    snapshot, exact = reader.refresh(), Reader(reader.folder).snapshot
    for ours, theirs, kind in (
        (snapshot.passages, exact.passages, "passages"),
        (snapshot.facts, exact.facts, "facts"),
    ):
        numbers, scores = ours.search(QUESTION, 100)
        others, expected = theirs.search(QUESTION, 100)
        keys, other_keys = (getattr(held.kinds, kind).keys for held in (snapshot, exact))
        found = {(keys[number], score) for number, score in zip(numbers.tolist(), scores.tolist(), strict=True)}
        assert found == {(other_keys[n], score) for n, score in zip(others.tolist(), expected.tolist(), strict=True)}
        assert ours.n_live == theirs.n_live == len(found)
    return type(snapshot.passages), type(snapshot.facts)


def test_a_table_crosses_over_in_both_directions(written: Written) -> None:
    reader = Reader(written.folder, exact_max=EXACT_MAX)
    memory, stored = (VectorTable, VectorTable), (StoredVectors, StoredVectors)
    grow(written, 0, 8)
    maintenance.index(written.writer, EXACT_MAX)
    assert places(reader) == memory
    grow(written, 8, 9)
    assert places(reader) == memory, "not indexed yet"
    before = reader.snapshot
    done = maintenance.index(written.writer, EXACT_MAX)
    assert {name: upkeep.step for name, upkeep in done.items() if "vectors" in name} == {
        "passages vectors": "trained",
        "facts vectors": "trained",
    }
    assert places(reader) == stored
    held = reader.snapshot
    shrink(written, 0, 2)
    assert places(reader) == stored, "a little smaller"
    shrink(written, 2, 3)
    assert places(reader) == memory
    grow(written, 0, 4)
    maintenance.compact(written.writer)
    assert places(reader) == stored
    # A quarter of what was there when the index was made, and no reason to keep it.
    shrink(written, 0, 7)
    maintenance.index(written.writer, EXACT_MAX)
    assert places(reader) == memory
    for snapshot in (before, held):
        assert len(snapshot.passages.search(QUESTION, 100)[0]) == snapshot.passages.n_live == 9


def test_where_nothing_is_due_nothing_is_committed(written: Written) -> None:
    maintenance.index(written.writer, EXACT_MAX)
    grow(written, 0, 9)
    maintenance.index(written.writer, EXACT_MAX)
    number = written.writer.manifest.number
    done = maintenance.index(written.writer, EXACT_MAX)
    assert {upkeep.step for upkeep in done.values()} == {"none"}
    assert written.writer.manifest.number == number


def test_a_cleaned_index_serves_the_snapshots_that_are_left(written: Written) -> None:
    """Every other snapshot is an indexed one; all but the newest go."""
    reader = Reader(written.folder, exact_max=EXACT_MAX)
    for number in range(0, 24, 4):
        grow(written, number, number + 4)
        maintenance.compact(written.writer)
        maintenance.index(written.writer, EXACT_MAX)
    maintenance.clean(written.writer, Retention(reach=timedelta(0), every=timedelta(0)))
    assert places(reader) == (StoredVectors, StoredVectors)
    assert places(Reader(written.folder, exact_max=EXACT_MAX)) == (StoredVectors, StoredVectors)
    grow(written, 24, 26)
    assert places(reader) == (StoredVectors, StoredVectors)
