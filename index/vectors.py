"""`VectorTable`: exact cosine search over rows that come and go, whose next version costs as much as what changed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .codes import encode, reaching
from .cosine import NOTHING, Float32s, Float64s, Int64s, Mask, best, exact_scores, marked, question
from .errors import StoreError

_FIRST_CAPACITY = 256
_LARGE = 10_000
"""Rows from which a full store is copied behind the questions; smaller ones are copied in no time."""
_NORM_SLACK = 1e-3


class _Store:
    """Append-only rows, shared by successive versions: a version never looks past its own length."""

    def __init__(self, capacity: int, d: int, dtype: type[np.floating[Any]]) -> None:
        self.vectors: NDArray[np.floating[Any]] = np.empty((capacity, d), dtype)
        # Float16 is for vectors that are looked at where others led to them: they are never searched through.
        coded = capacity if dtype is np.float32 else 0
        self.codes: NDArray[np.int8] = np.empty((coded, d), np.int8)
        self.steps: Float64s = np.empty(coded, np.float64)
        self.items: Int64s = np.empty(capacity, np.int64)
        self.used = 0

    def append(self, items: Int64s, vectors: NDArray[np.floating[Any]]) -> None:
        end = self.used + len(items)
        self.items[self.used : end] = items
        self.vectors[self.used : end] = vectors
        if len(self.codes):
            encode(self.vectors[self.used : end], self.codes[self.used : end], self.steps[self.used : end])
        self.used = end


class VectorTable:
    """Exact search (see Vectors): it misses nothing, and its answers do not depend on the history of the table. The
    vectors are float32, or float16 where that is asked for.

    `extend` copies 9 bytes a row (is it live, which row is an item's) and appends; only where the shared matrix is full
    are the live rows copied to one of twice the size, so dead rows never pile up. One thread may extend. Dead rows, the
    order of the rows and the capacity change no digit of a score. A search looks through a copy of a byte a number, and
    compares what may be among the best exactly.

    >>> table = VectorTable.empty(2).extend([7, 9], [[1.0, 0.0], [0.6, 0.8]])
    >>> table.search(np.array([0.0, 1.0]), k=1)
    (array([9]), array([0.80000001]))
    >>> table.extend([], np.empty((0, 2)), dead_rows=[table.row_of(9)]).n_live
    1
    """

    __slots__ = ("_live", "_row", "_store", "n_live", "n_rows")

    def __init__(self, store: _Store, live: Mask, row: Int64s) -> None:
        self._store = store
        self._live = live
        self._row = row
        self.n_rows = len(live)
        """Rows, dead ones included."""
        self.n_live = int(np.count_nonzero(live))

    @classmethod
    def empty(cls, d: int, dtype: type[np.floating[Any]] = np.float32) -> VectorTable:
        """A table of no rows for vectors of `d` numbers."""
        return cls(_Store(_FIRST_CAPACITY, d, dtype), np.zeros(0, np.bool_), np.zeros(0, np.int64))

    @property
    def d(self) -> int:
        return int(self._store.vectors.shape[1])

    def extend(self, items: ArrayLike, vectors: ArrayLike, dead_rows: ArrayLike = ()) -> VectorTable:
        """The version in which `dead_rows` are gone and `items` (m,) have the rows `vectors` (m, d); self is unchanged.

        A row for an item that has one replaces it. Raises StoreError for a vector that is neither of unit length nor
        zero, for shapes that do not fit, and for a dead row that is not live.
        """
        new, matrix = self._checked(items, vectors)
        dead = np.asarray(dead_rows, dtype=np.int64)
        live, row = self._live.copy(), self._row
        if len(dead) and (dead.min() < 0 or dead.max() >= self.n_rows or not live[dead].all()):
            raise StoreError(
                f"a row to remove is not among the {self.n_live} live ones",
                hint="Ask row_of of the version that is extended.",
            )
        former = self.rows_of(new)
        live[dead] = False
        live[former[former >= 0]] = False

        store, start = self._store, self._store.used
        if start + len(new) > len(store.items):
            store, live = _grown(store, live, len(new))
            start, row = len(live), np.zeros(0, np.int64)
        store.append(new, matrix)
        # Rows that a sibling version appended in between belong to no item of this one.
        live = np.concatenate((live, np.zeros(start - len(live), np.bool_), np.ones(len(new), np.bool_)))
        return VectorTable(store, live, _row_of_item(row, store.items, live, start))

    def _checked(self, items: ArrayLike, vectors: ArrayLike) -> tuple[Int64s, Float32s]:
        new = np.asarray(items, dtype=np.int64)
        matrix = np.asarray(vectors, dtype=np.float32)
        if matrix.shape != (len(new), self.d) or len(np.unique(new)) != len(new) or new.min(initial=0) < 0:
            raise StoreError(
                f"vectors of shape {matrix.shape} do not give each of {len(new)} items one row of {self.d} numbers",
                hint="Each item may appear once; embed with the model this index was made with.",
            )
        norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
        wrong = np.flatnonzero(~((np.abs(norms - 1) <= _NORM_SLACK) | (norms == 0)))
        if len(wrong):
            raise StoreError(
                f"the vector of item {new[wrong[0]]} has length {norms[wrong[0]]:.6g}",
                hint="Normalise vectors to unit length.",
            )
        return new, matrix

    @property
    def worn(self) -> bool:
        """Whether the shared matrix will soon be full, so that `renewed` spares `extend` the copy."""
        return self._store.used > max(_LARGE, len(self._store.items) * 3 // 4)

    def renewed(self) -> VectorTable:
        """The same content with room for as many rows again: copies every live row, meant for a thread of its own."""
        store, live = _grown(self._store, self._live, 0)
        return VectorTable(store, live, _row_of_item(np.zeros(0, np.int64), store.items, live, len(live)))

    def onto(self, base: VectorTable, of: VectorTable) -> VectorTable:
        """This version in another matrix: `base` is `of` renewed, and self came from `of` by `extend`.

        Costs a look at every row and what came since `of`. A version that had to grow by itself meanwhile stays.
        """
        if self._store is not of._store:
            return self
        late = of.n_rows + np.flatnonzero(self._live[of.n_rows :])
        dead = np.flatnonzero(~self._live[: of.n_rows][of._live])
        return base.extend(self._store.items[late], self._store.vectors[late], dead)

    def row_of(self, item: int) -> int:
        """The live row of an item, -1 where it has none."""
        return int(self.rows_of(np.array([item]))[0])

    def rows_of(self, items: Int64s) -> Int64s:
        """The live rows (m,) of items (m,), -1 where an item has none."""
        rows = np.full(len(items), -1, np.int64)
        known = (items >= 0) & (items < len(self._row))
        rows[known] = self._row[items[known]]
        return rows

    def has(self, items: Int64s) -> Mask:
        """See Vectors."""
        return self.rows_of(items) >= 0

    def items(self) -> Int64s:
        """All items that have a vector, ascending."""
        return np.flatnonzero(self._row >= 0)

    def scores(self, items: ArrayLike, q: Float64s) -> Float64s:
        """See Vectors."""
        asked = np.asarray(items, dtype=np.int64)
        rows = self.rows_of(asked)
        if len(rows) and rows.min() < 0:
            raise StoreError(f"item {asked[rows < 0][0]} has no vector", hint="Score items of the same snapshot only.")
        return exact_scores(self._store.vectors, rows, question(q, self.d))

    def search(
        self, q: Float64s, k: int, *, positive: bool = False, among: Mask | None = None
    ) -> tuple[Int64s, Float64s]:
        """See Vectors."""
        asked = question(q, self.d)
        live = self._live if among is None else self._live & marked(self._store.items[: self.n_rows], among)
        if k <= 0 or not live.any():
            return NOTHING
        rows = self._candidates(asked, k, live)
        return best(self._store.items[rows], exact_scores(self._store.vectors, rows, asked), k, positive)

    def _candidates(self, q: Float64s, k: int, live: Mask) -> Int64s:
        """Live rows that may be among the k best: whose score may reach what the k-th has at least."""
        if k >= np.count_nonzero(live) or not len(self._store.codes):
            return np.flatnonzero(live)
        return reaching(self._store.codes[: self.n_rows], self._store.steps[: self.n_rows], live, q, k)


def _grown(store: _Store, live: Mask, room: int) -> tuple[_Store, Mask]:
    kept = np.flatnonzero(live)
    capacity = max(2 * (len(kept) + room), _FIRST_CAPACITY)
    grown = _Store(capacity, store.vectors.shape[1], store.vectors.dtype.type)
    grown.append(store.items[kept], store.vectors[kept])
    return grown, np.ones(len(kept), np.bool_)


def _row_of_item(row: Int64s, items: Int64s, live: Mask, start: int) -> Int64s:
    """The live row of every item: the former version's `row` less what died, plus what came from row `start` on."""
    first = start if len(row) else 0
    fresh = first + np.flatnonzero(live[first:])
    grown = np.full(max(len(row), int(items[fresh].max(initial=-1)) + 1), -1, np.int64)
    grown[: len(row)] = np.where((row >= 0) & live[row], row, -1)
    grown[items[fresh]] = fresh
    return grown
