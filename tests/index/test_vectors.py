"""Vector search equals a naive float64 scan after any history, and no version ever changes."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from index import vectors as vectors_module
from index.errors import BadRequest, StoreError
from index.vectors import VectorTable

Vectors = dict[int, NDArray[np.float32]]
D = 5
# A coarse grid makes ties, opposite vectors and zero vectors likely.
coordinates = st.lists(st.integers(-2, 2), min_size=D, max_size=D)
batches = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 30), coordinates, max_size=8),
        st.sets(st.integers(0, 30), max_size=6),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def unit(numbers: Any) -> NDArray[np.float32]:
    vector = np.asarray(numbers, dtype=np.float64)
    return (vector / (np.linalg.norm(vector) or 1.0)).astype(np.float32)


def stacked(vectors: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.array(vectors, dtype=np.float32).reshape(-1, D)


def naive(held: Vectors, q: NDArray[np.float64], k: int, positive: bool) -> tuple[list[int], list[float]]:
    scored = []
    for item, vector in held.items():
        total = 0.0
        for x, y in zip(vector.tolist(), q.tolist(), strict=True):
            total += x * y
        scored.append((-float(np.round(total, 12)), item))
    ranked = sorted(pair for pair in scored if pair[0] < 0 or not positive)
    kept = [pair for pair in ranked if k and pair[0] <= ranked[min(k, len(ranked)) - 1][0]]
    return [item for _, item in kept], [-score for score, _ in kept]


def check(table: VectorTable, held: Vectors, q: NDArray[np.float64], k: int, positive: bool) -> None:
    items, scores = table.search(q, k, positive=positive)
    assert (items.tolist(), scores.tolist()) == naive(held, q, k, positive)
    assert table.n_live == len(held)
    assert table.scores(items, q).tolist() == scores.tolist()
    assert all((table.row_of(item) >= 0) == (item in held) for item in range(32))


@settings(deadline=None)
@given(batches, coordinates, st.integers(0, 12), st.booleans())
def test_every_version_of_any_history_equals_a_naive_scan(
    history: list[tuple[dict[int, list[int]], set[int], bool]], direction: list[int], k: int, positive: bool
) -> None:
    q = unit(direction).astype(np.float64)
    table, held = VectorTable.empty(D), Vectors()
    versions = []
    begun = None
    for born, doomed, renew in history:
        dead = [table.row_of(item) for item in doomed if item in held]
        fresh = {item: unit(numbers) for item, numbers in born.items()}
        table = table.extend(list(fresh), stacked(list(fresh.values())), dead)
        held = {item: vector for item, vector in held.items() if item not in doomed} | fresh
        versions.append((table, held))
        if renew and begun is None:
            begun = table
        elif begun is not None and renew:
            table, begun = table.onto(begun.renewed(), begun), None
            versions.append((table, held))
    for version, content in versions:
        check(version, content, q, k, positive)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 2**32), st.integers(1, 40))
def test_near_ties_are_ranked_by_the_exact_score(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    centre = random.normal(size=384)
    near = centre + 1e-6 * random.normal(size=(600, 384))
    vectors = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)
    q = centre / np.linalg.norm(centre)
    items, scores = VectorTable.empty(384).extend(np.arange(600), vectors).search(q, k)
    exact = vectors.astype(np.float64) @ q
    assert np.allclose(scores, np.sort(exact)[::-1][: len(items)], atol=2e-12, rtol=0)
    assert len(items) >= k


def test_growth_drops_dead_rows_and_changes_no_digit() -> None:
    random = np.random.default_rng(20_260)
    vectors = np.array([unit(row) for row in random.normal(size=(100, D))])
    q = unit(random.normal(size=D)).astype(np.float64)
    plain = VectorTable.empty(D).extend(np.arange(100), vectors)
    churned = VectorTable.empty(D)
    for turn in range(40):
        churned = churned.extend(np.arange(100), vectors[(np.arange(100) + turn + 1) % 100])
    old = churned
    churned = churned.extend(np.arange(100)[::-1], vectors[::-1])
    assert churned.n_rows <= 600
    for k in (1, 7, 100):
        for ours, theirs in zip(churned.search(q, k), plain.search(q, k), strict=True):
            assert ours.tobytes() == theirs.tobytes()
    assert old.scores([0], q) == plain.scores([40], q)


def test_two_successors_of_one_version_do_not_see_each_other() -> None:
    table = VectorTable.empty(2).extend([0], [[1, 0]])
    a, b = table.extend([1], [[0, 1]]), table.extend([2], [[0, -1]])
    q = np.array([0.0, 1.0])
    assert a.search(q, 5)[0].tolist() == [1, 0]
    assert b.search(q, 5)[0].tolist() == [0, 2]
    assert b.row_of(1) == -1
    assert b.extend([3], [[1, 0]], [b.row_of(2)]).search(q, 5)[0].tolist() == [0, 3]


@pytest.mark.parametrize(
    ("items", "vectors", "dead"),
    [
        ([1], [[3.0, 4.0]], []),
        ([1], [[np.nan, 0.0]], []),
        ([1], [[1.0, 0.0, 0.0]], []),
        ([1, 1], [[1.0, 0.0], [0.0, 1.0]], []),
        ([-1], [[1.0, 0.0]], []),
        ([], np.empty((0, 2)), [1]),
        ([], np.empty((0, 2)), [-1]),
    ],
)
def test_rows_that_do_not_fit_are_refused(items: list[int], vectors: ArrayLike, dead: list[int]) -> None:
    table = VectorTable.empty(2).extend([0], [[1.0, 0.0]])
    with pytest.raises(StoreError):
        table.extend(items, vectors, dead)
    assert table.n_rows == 1


def test_questions_that_make_no_sense_are_refused() -> None:
    table = VectorTable.empty(2).extend([0], [[1.0, 0.0]])
    with pytest.raises(BadRequest, match="2 finite numbers"):
        table.search(np.ones(3), 1)
    with pytest.raises(BadRequest):
        table.search(np.array([np.nan, 0.0]), 1)
    with pytest.raises(StoreError, match="item 5"):
        table.scores([0, 5], np.ones(2))


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(vectors_module).failed == 0
