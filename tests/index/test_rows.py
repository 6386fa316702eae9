"""Sparse rows equal a dictionary of counters after any history, and no version ever changes."""

from __future__ import annotations

import doctest
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import StoreError
from index.graph import rows as rows_module
from index.graph.rows import SparseRows

Entries = list[tuple[int, int, int]]
COLS = 6
entries = st.lists(st.tuples(st.integers(0, 4), st.integers(0, COLS - 1), st.integers(-2, 2)), max_size=12)
steps = st.lists(st.tuples(entries, st.integers(0, 3), st.booleans()), max_size=6)


def columns(delta: Entries) -> tuple[list[int], list[int], list[int]]:
    return [r for r, _, _ in delta], [c for _, c, _ in delta], [w for _, _, w in delta]


def content(table: SparseRows) -> list[dict[int, int]]:
    rows = [table.row(i) for i in range(table.n_rows)]
    assert all(a < b for cols, _ in rows for a, b in pairwise(cols)), "columns are sorted and none comes twice"
    return [dict(zip(cols.tolist(), weights.tolist(), strict=True)) for cols, weights in rows]


def expected(delta: Entries, n_rows: int) -> list[dict[int, int]]:
    sums: list[Counter[int]] = [Counter() for _ in range(n_rows)]
    for row, col, weight in delta:
        sums[row][col] += weight
    return [{col: weight for col, weight in row.items() if weight} for row in sums]


def check(table: SparseRows, delta: Entries, n_rows: int) -> None:
    reference = expected(delta, n_rows)
    assert content(table) == reference
    assert table.n_rows == n_rows
    assert table.totals.tolist() == [sum(row.values()) for row in reference]
    dense = np.zeros((n_rows, COLS), np.int64)
    for row, held in enumerate(reference):
        for col, weight in held.items():
            dense[row, col] = weight
    matrix = table.to_csr(COLS)
    assert np.array_equal(matrix.toarray(), dense)
    assert matrix.nnz == np.count_nonzero(dense)
    assert matrix.dtype == np.int64


@settings(deadline=None)
@given(entries, steps)
def test_every_version_of_any_history_equals_counters(first: Entries, later: list[tuple[Entries, int, bool]]) -> None:
    n_rows = 5
    table = SparseRows.from_entries(*columns(first), n_rows)
    versions = [(table, first, n_rows)]
    begun = None
    for delta, growth, renew in later:
        n_rows += growth
        table = table.extend(*columns(delta), n_rows)
        versions.append((table, versions[-1][1] + delta, n_rows))
        if renew and begun is None:
            begun = table
        elif begun is not None and renew:
            since = table.n_delta - begun.n_delta
            table, begun = table.onto(begun.renewed(), begun), None
            assert table.n_delta == since
            versions.append((table, *versions[-1][1:]))
    for version, delta, size in versions:
        check(version, delta, size)


@settings(deadline=None)
@given(entries, entries, entries)
def test_two_successors_of_one_version_do_not_see_each_other(first: Entries, left: Entries, right: Entries) -> None:
    table = SparseRows.from_entries(*columns(first), 5)
    a, b = table.extend(*columns(left), 5), table.extend(*columns(right), 5)
    check(a, first + left, 5)
    check(b, first + right, 5)
    check(b.renewed(), first + right, 5)
    assert b.renewed().n_delta == 0
    check(b.onto(table.renewed(), table), first + right, 5)


def test_a_delta_that_outgrows_the_arena_leaves_older_versions_alone() -> None:
    table = SparseRows.from_entries([], [], [], 2)
    few = table.extend([1] * 700, range(700), [1] * 700, 2)
    many = few.extend([1] * 9_000, range(9_000), [1] * 9_000, 2)
    assert few.row(1)[0].tolist() == list(range(700))
    assert many.row(1)[1].tolist() == [2] * 700 + [1] * 8_300
    assert (few.total(1), many.total(1), many.n_delta) == (700, 9_700, 9_700)


def test_a_version_cannot_be_written_to() -> None:
    table = SparseRows.from_entries([0], [1], [1], 1)
    with pytest.raises(ValueError, match="read-only"):
        table.row(0)[1][0] = 2
    with pytest.raises(ValueError, match="read-only"):
        table.totals[0] = 2


@pytest.mark.parametrize(
    ("entry", "n_rows"),
    [(([2], [0], [1]), 2), (([-1], [0], [1]), 2), (([0], [-1], [1]), 2), (([0], [2**31], [1]), 2), (([0], [0], []), 2)],
)
def test_entries_outside_are_refused(entry: tuple[list[int], list[int], list[int]], n_rows: int) -> None:
    with pytest.raises(StoreError):
        SparseRows.from_entries(*entry, n_rows)
    with pytest.raises(StoreError):
        SparseRows.from_entries([], [], [], n_rows).extend(*entry, n_rows)


def test_wrong_bases_rows_and_sizes_are_refused() -> None:
    with pytest.raises(StoreError, match="does not fit"):
        SparseRows.from_csr(np.array([0, 2]), np.array([1], np.int32), np.array([1]))
    table = SparseRows.from_entries([0], [1], [1], 2)
    with pytest.raises(StoreError, match="row 2"):
        table.row(2)
    with pytest.raises(StoreError, match="shrink"):
        table.extend([], [], [], 1)


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(rows_module).failed == 0
