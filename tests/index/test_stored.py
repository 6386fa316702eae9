"""Both ways to search by cosine keep one contract: in memory, and left in the table, indexed or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from index import stored as stored_module
from index.cosine import Vectors
from index.errors import BadRequest, StoreError
from index.indexes import NEAREST, has_index, keep_nearest, merged
from index.keys import halves, term_key
from index.numbers import Numbers
from index.stored import StoredVectors
from index.tables import key_filter
from index.vectors import VectorTable

D = 8
Held = dict[int, NDArray[np.float32]]
coordinates = st.lists(st.integers(-2, 2), min_size=D, max_size=D)
batches = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 40), coordinates, max_size=12),
        st.sets(st.integers(0, 40), max_size=6),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


def unit(numbers: Any) -> NDArray[np.float32]:
    vector = np.asarray(numbers, dtype=np.float64)
    return (vector / (np.linalg.norm(vector) or 1.0)).astype(np.float32)


def numbered(count: int) -> Numbers:
    """Keys for the numbers 0, 1, …"""
    numbers = Numbers()
    numbers.assign(*halves([term_key(str(number)) for number in range(count)]))
    return numbers


class InTable:
    """A Lance table of vectors that changes as a writer would change it, and every version of it as StoredVectors."""

    def __init__(self, folder: Path, count: int, d: int = D) -> None:
        self.numbers = numbered(count)
        self.path = str(folder / "vectors.lance")
        self.schema = pa.schema([("key", pa.binary(16)), ("vector", pa.list_(pa.float32(), d))])
        self.dataset = lance.write_dataset(self.schema.empty_table(), self.path)
        self.stored = StoredVectors(self.dataset, self.numbers, np.zeros(0, np.bool_))

    def change(self, born: Held, dead: set[int], exact_max: int | None = None) -> StoredVectors:
        gone = [self.numbers.keys[item] for item in {*dead, *born}]
        if gone:
            self.dataset.delete(key_filter(gone))
        if born:
            flat = pa.array(np.array([*born.values()], np.float32).reshape(-1))
            vectors = pa.FixedSizeListArray.from_arrays(flat, self.schema.field("vector").type.list_size)
            rows = pa.table({"key": [self.numbers.keys[item] for item in born], "vector": vectors}, schema=self.schema)
            self.dataset = lance.write_dataset(rows, self.path, mode="append")
        if exact_max is not None and self.dataset.count_rows():
            keep_nearest(self.dataset, self.dataset.count_rows(), exact_max)
        version = lance.dataset(self.path, version=self.dataset.version)
        items = np.array([*born], np.int64)
        self.stored = self.stored.moved(version, items, np.array(sorted(dead), np.int64))
        return self.stored


def naive(
    held: Held, q: NDArray[np.float64], k: int, positive: bool, among: set[int] | None
) -> list[tuple[float, int]]:
    scored = []
    for item, vector in held.items():
        total = 0.0
        for x, y in zip(vector.tolist(), q.tolist(), strict=True):
            total += x * y
        scored.append((-float(np.round(total, 12)), item))
    counted = sorted(p for p in scored if (p[0] < 0 or not positive) and (among is None or p[1] in among))
    return [(-score, item) for score, item in counted if k and score <= counted[min(k, len(counted)) - 1][0]]


def check(vectors: Vectors, held: Held, q: NDArray[np.float64], k: int, positive: bool, among: set[int] | None) -> None:
    mask = None if among is None else np.isin(np.arange(max(among, default=-1) + 1), list(among))
    items, scores = vectors.search(q, k, positive=positive, among=mask)
    assert [*zip(scores.tolist(), items.tolist(), strict=True)] == naive(held, q, k, positive, among)
    assert vectors.n_live == len(held)
    assert vectors.scores(items[::-1], q).tolist() == scores[::-1].tolist()
    assert vectors.has(np.arange(45)).tolist() == [item in held for item in range(45)]


@settings(max_examples=25, deadline=None)
@given(batches, coordinates, st.integers(0, 12), st.booleans(), st.none() | st.sets(st.integers(0, 40)))
def test_both_equal_a_naive_scan_after_any_history_and_old_versions_stay(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[dict[int, list[int]], set[int], bool]],
    direction: list[int],
    k: int,
    positive: bool,
    among: set[int] | None,
) -> None:
    """So few rows that an index looks at all of them; some versions have an index that is behind, some have none."""
    q = unit(direction).astype(np.float64)
    table, memory, held = InTable(tmp_path_factory.mktemp("stored"), 45), VectorTable.empty(D), Held()
    versions: list[tuple[Vectors, Vectors, Held]] = []
    for born, doomed, kept_up in history:
        fresh = {item: unit(numbers) for item, numbers in born.items()}
        dead = {item for item in doomed if item in held}
        memory = memory.extend(
            list(fresh), np.array([*fresh.values()], np.float32).reshape(-1, D), [memory.row_of(item) for item in dead]
        )
        stored = table.change(fresh, dead, exact_max=0 if kept_up else None)
        held = {item: vector for item, vector in held.items() if item not in doomed} | fresh
        versions.append((memory, stored, held))
    for one, other, content in versions:
        check(one, content, q, k, positive, among)
        check(other, content, q, k, positive, among)


Make = Callable[[Held], Vectors]


@pytest.fixture(params=["in memory", "in the table"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def in_memory(held: Held) -> Vectors:
        return VectorTable.empty(D).extend(list(held), np.array([*held.values()]))

    def in_table(held: Held) -> Vectors:
        return InTable(tmp_path, 50).change(held, set(), exact_max=0)

    return in_memory if request.param == "in memory" else in_table


def test_questions_that_make_no_sense_are_refused(make: Make) -> None:
    vectors = make({0: unit(np.eye(D)[0])})
    for wrong in (np.ones(D + 1), np.full(D, np.nan)):
        with pytest.raises(BadRequest, match="8 finite numbers"):
            vectors.search(wrong, 1)
        with pytest.raises(BadRequest):
            vectors.scores([0], wrong)
    for item in (5, 4_000, -1):
        with pytest.raises(StoreError, match=f"item {item}"):
            vectors.scores([0, item], np.ones(D))
    assert vectors.scores([], np.ones(D)).tolist() == []
    assert vectors.scores([0, 0], np.eye(D)[0]).tolist() == [1.0, 1.0]


def clustered(random: np.random.Generator, count: int, d: int) -> NDArray[np.float32]:
    centres = random.normal(size=(40, d))
    rows = centres[random.integers(0, 40, count)] + 0.7 * random.normal(size=(count, d))
    return np.array([unit(row) for row in rows])


def test_an_index_of_many_partitions_finds_nearly_all_and_scores_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where half of the partitions are not looked at; a third of the rows goes, and new ones come."""
    for module in (stored_module, __import__("index.indexes", fromlist=["indexes"])):
        monkeypatch.setattr(module, "ROWS_PER_PARTITION", 50)
    monkeypatch.setattr(stored_module, "LEAST_PROBED", 1)
    random, d = np.random.default_rng(11), 32
    matrix = clustered(random, 4_000, d)
    table = InTable(tmp_path, 4_000, d)
    table.change(dict(enumerate(matrix[:3_000])), set(), exact_max=0)
    before = table.stored
    stored = table.change({i: matrix[i] for i in range(3_000, 4_000)}, set(range(0, 3_000, 3)))
    memory = VectorTable.empty(d).extend(np.arange(4_000), matrix)
    memory = memory.extend([], np.empty((0, d)), memory.rows_of(np.arange(0, 3_000, 3)))
    among = np.arange(4_000) % 7 == 1
    found: dict[str, list[float]] = {"all": [], "some": [], "before": []}
    for q in clustered(random, 30, d).astype(np.float64):
        for name, vectors, mask in (("all", stored, None), ("some", stored, among)):
            items, scores = vectors.search(q, 10, among=mask)
            exact, _ = memory.search(q, 10, among=mask)
            assert len(items) >= 10 and memory.scores(items, q).tolist() == scores.tolist()
            assert mask is None or mask[items].all()
            found[name].append(len(np.intersect1d(items, exact)) / len(exact))
        items, _ = before.search(q, 10)
        found["before"].append(np.isin(items, np.argsort(-(matrix[:3_000] @ q))[:10]).mean())
    assert all(np.mean(share) > 0.95 for share in found.values()), {n: np.mean(s) for n, s in found.items()}


def test_the_life_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("index.indexes.ROWS_PER_PARTITION", 20)
    table, random = InTable(tmp_path, 600), np.random.default_rng(12)

    def step(first: int, last: int, dead: set[int] = frozenset()) -> str:  # type: ignore[assignment]
        table.change({i: row for i, row in enumerate(clustered(random, last - first, D), first)}, dead)
        return keep_nearest(table.dataset, table.dataset.count_rows(), exact_max=50).step

    def segments() -> int:
        return len(table.dataset.stats.index_stats(NEAREST)["num_indexed_rows_per_delta"])

    assert step(0, 40) == "none", "not above exact_max"
    assert step(40, 60) == "trained"
    assert keep_nearest(table.dataset, 60, exact_max=50).step == "none", "nothing came"
    assert step(60, 70) == "added" and segments() == 2
    assert step(70, 75) == "added" and segments() == 3
    assert step(75, 90) == "added" and segments() == 2, "three small ones became one"
    assert step(90, 300) == "trained", "four times as many"
    assert step(0, 250) == "added"
    assert step(0, 250) == "added" and segments() == 2, "what died in a delta goes when it is merged"
    assert step(300, 301, set(range(250, 291))) == "trained", "more of the index is dead than alive"
    assert step(301, 302, set(range(10, 300))) == "dropped"
    assert not has_index(table.dataset, NEAREST)


@given(st.lists(st.integers(1, 5_000), max_size=400))
def test_an_index_has_few_deltas_and_writes_each_row_seldom(batches: list[int]) -> None:
    deltas: list[int] = []
    written = 0
    for fresh in batches:
        count = merged(deltas, fresh)
        rows = fresh + sum(deltas[len(deltas) - count :])
        written += rows
        deltas = [*deltas[: len(deltas) - count], rows]
    total = sum(batches)
    assert sum(deltas) == total
    assert len(deltas) <= np.log2(max(2, total)) + 1
    assert written <= total * (np.log2(max(2, total)) + 1)
