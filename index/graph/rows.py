"""`SparseRows`: a reader's immutable view of an integer incidence, whose next version costs as much as what changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from ..errors import StoreError
from .chains import Chains, Int32s, Int64s, append, consolidated, followed, merged

SMALL_DELTA = 100_000
"""Entries that may always stay outside a base."""

_FIRST_CAPACITY = 1024


class _Arena:
    """Append-only delta entries, shared by successive versions: each follows only what its own heads lead to."""

    def __init__(self, capacity: int) -> None:
        self.col: Int32s = np.empty(capacity, np.int32)
        self.weight: Int64s = np.empty(capacity, np.int64)
        self.next: Int32s = np.empty(capacity, np.int32)
        self.used = 0

    def with_room(self, entries: int) -> _Arena:
        """This arena, or a copy with room for as much again: a reader in mid-walk keeps the arrays it has."""
        needed = self.used + entries
        if needed <= len(self.col):
            return self
        grown = _Arena(max(2 * needed, _FIRST_CAPACITY))
        grown.used = self.used
        for old, new in ((self.col, grown.col), (self.weight, grown.weight), (self.next, grown.next)):
            new[: self.used] = old[: self.used]
        return grown


class SparseRows:
    """Rows of (column, integer weight): term x passage, fact x passage or node x node.

    A base in CSR form, which may be memory-mapped, carries chains of later entries; entries of one column add up and a
    sum of zero is no entry. `extend` copies 12 bytes a row (chain head and row sum) and appends the delta; nothing else
    is touched, and every older version stays readable. Any number of threads may read; one thread at a time may extend
    versions that share a base.

    >>> mentions = SparseRows.from_entries([0, 0, 2], [1, 4, 1], [1, 2, 1], n_rows=3)
    >>> edited = mentions.extend([0, 1], [4, 0], [-2, 5], n_rows=3)
    >>> edited.row(0), mentions.total(0), edited.total(0)
    ((array([1], dtype=int32), array([1])), 3, 1)
    """

    __slots__ = ("_arena", "chains", "n_delta", "totals")

    def __init__(self, chains: Chains, totals: Int64s, arena: _Arena) -> None:
        # Read-only throughout: a version never changes, and the kernels are compiled for one kind of array only.
        for array in (chains.ptr, chains.col, chains.weight, chains.head, totals):
            array.flags.writeable = False
        self.chains = chains
        self.totals = totals
        """Sum of each row, int64[n_rows]."""
        self.n_delta = arena.used
        """Entries outside the base, cancelled ones included."""
        self._arena = arena

    @classmethod
    def from_csr(cls, ptr: Int64s, col: Int32s, weight: Int64s) -> SparseRows:
        """View CSR arrays: ptr[n+1], col[nnz] (sorted within a row, none twice), weight[nnz] (no zeros).

        Only the row sums are computed. Raises StoreError where the three do not fit together.
        """
        if len(ptr) < 1 or ptr[0] != 0 or ptr[-1] != len(col) or len(col) != len(weight) or np.any(np.diff(ptr) < 0):
            raise StoreError(
                f"a base of {len(ptr) - 1} rows does not fit its {len(col)} columns and {len(weight)} weights",
                hint="Rebuild the base from the segments of its manifest.",
            )
        sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(weight, dtype=np.int64)))
        base = (np.asarray(ptr).view(), np.asarray(col).view(), np.asarray(weight).view())
        return _based(*base, sums[ptr[1:]] - sums[ptr[:-1]])

    @classmethod
    def from_entries(cls, rows: ArrayLike, cols: ArrayLike, weights: ArrayLike, n_rows: int) -> SparseRows:
        """Sum entries in any order (three int arrays (m,)); raises StoreError where a row or column is outside."""
        r, c, w = _entries(rows, cols, weights, n_rows)
        matrix = coo_array((w, (r, c)), shape=(n_rows, _width(c))).tocsr()
        matrix.eliminate_zeros()
        return _from_canonical(matrix)

    def extend(self, rows: ArrayLike, cols: ArrayLike, weights: ArrayLike, n_rows: int) -> SparseRows:
        """The version after a delta (three int arrays (m,), weights of either sign); self is unchanged.

        `n_rows` may grow. Raises StoreError where it shrinks, and where a row or column is outside.
        """
        if n_rows < self.n_rows:
            raise StoreError(
                f"an incidence of {self.n_rows} rows cannot shrink to {n_rows}",
                hint="Retract the entries and keep the rows.",
            )
        r, c, w = _entries(rows, cols, weights, n_rows)
        head = np.full(n_rows, -1, np.int32)
        head[: self.n_rows] = self.chains.head
        totals = np.zeros(n_rows, np.int64)
        totals[: self.n_rows] = self.totals
        arena = self._arena.with_room(len(r))
        append(r, c, w, head, totals, arena.col, arena.weight, arena.next, arena.used)
        arena.used += len(r)
        chains = self.chains._replace(head=head, arena_col=arena.col, arena_weight=arena.weight, arena_next=arena.next)
        return SparseRows(chains, totals, arena)

    def grown(self, rows: ArrayLike, cols: ArrayLike, weights: ArrayLike, n_rows: int) -> SparseRows:
        """`extend`, to at least `n_rows`; the first entries are the base."""
        n_rows = max(n_rows, self.n_rows)
        if not self.n_rows:
            return SparseRows.from_entries(rows, cols, weights, n_rows)
        return self.extend(rows, cols, weights, n_rows)

    @property
    def n_rows(self) -> int:
        return len(self.totals)

    @property
    def n_base(self) -> int:
        """Entries in the base."""
        return len(self.chains.col)

    def row(self, i: int) -> tuple[Int32s, Int64s]:
        """Columns and weights of row i, (m,) each: sorted by column, none twice, no zeros."""
        if not 0 <= i < self.n_rows:
            raise StoreError(
                f"row {i} is not among the {self.n_rows} rows", hint="Number rows by the snapshot they are read from."
            )
        if self.chains.head[i] < 0 and i + 1 < len(self.chains.ptr):
            base = slice(self.chains.ptr[i], self.chains.ptr[i + 1])
            return self.chains.col[base], self.chains.weight[base]
        return merged(self.chains, i)

    def total(self, i: int) -> int:
        """Sum of row i."""
        return int(self.totals[i])

    def to_csr(self, n_cols: int) -> csr_array:
        """The whole as an int64 matrix (n_rows, n_cols) in canonical form; without a delta it shares the base."""
        ptr, col, weight = self.chains[:3]
        whole_ptr = np.concatenate((ptr, np.full(self.n_rows + 1 - len(ptr), ptr[-1])))
        base = csr_array((weight, col, whole_ptr), shape=(self.n_rows, n_cols))
        rows, entries = followed(self.chains, 0, self.n_delta)
        if not len(rows):
            return base
        late = (self.chains.arena_weight[entries], (rows, self.chains.arena_col[entries]))
        return base + coo_array(late, shape=(self.n_rows, n_cols)).tocsr()

    @property
    def worn(self) -> bool:
        """Whether so much is outside the base that `renewed` pays; log(N) times on the way to N entries."""
        return self.n_delta > SMALL_DELTA + self.n_base // 4

    def renewed(self) -> SparseRows:
        """The same content, all of it in the base: O(entries), meant for a thread of its own."""
        ptr, col, weight = consolidated(self.chains, self.n_delta)
        return _based(ptr, col, weight, self.totals)

    def onto(self, base: SparseRows, of: SparseRows) -> SparseRows:
        """This version on another base: `base` is `of` renewed, and self came from `of` by `extend`.

        Costs a look at every row and what came since `of`.
        """
        rows, places = followed(self.chains, of.n_delta, self.n_delta)
        late = self.chains.arena_col[places], self.chains.arena_weight[places]
        return base.extend(rows, *late, self.n_rows)


def _width(cols: NDArray[np.integer]) -> int:
    return int(cols.max(initial=0)) + 1


def _based(ptr: Int64s, col: Int32s, weight: Int64s, totals: Int64s) -> SparseRows:
    """A base without a delta."""
    arena, head = _Arena(0), np.full(len(ptr) - 1, -1, np.int32)
    return SparseRows(Chains(ptr, col, weight, head, arena.col, arena.weight, arena.next), totals, arena)


def _from_canonical(matrix: csr_array) -> SparseRows:
    return SparseRows.from_csr(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.int64)
    )


def _entries(rows: ArrayLike, cols: ArrayLike, weights: ArrayLike, n_rows: int) -> tuple[Int64s, Int64s, Int64s]:
    r, c, w = (np.ascontiguousarray(part, dtype=np.int64) for part in (rows, cols, weights))
    if not len(r) == len(c) == len(w):
        raise StoreError(
            f"{len(r)} rows, {len(c)} columns and {len(w)} weights are no list of entries",
            hint="Give one of each per entry.",
        )
    if len(r) and (min(r.min(), c.min()) < 0 or r.max() >= n_rows or c.max() > np.iinfo(np.int32).max):
        raise StoreError(
            f"an entry lies outside {n_rows} rows (rows {r.min()} to {r.max()}, columns {c.min()} to {c.max()})",
            hint="Number the new keys before adding their entries.",
        )
    return r, c, w
