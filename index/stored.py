"""`StoredVectors`: cosine search that leaves the vectors in their table and finds candidates through its index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import records
from .cosine import NOTHING, Float32s, Float64s, Int64s, Mask, best, exact_scores, marked, question
from .errors import StoreError
from .numbers import Numbers
from .tables import read_columns

ROWS_PER_PARTITION = 4096
"""Rows of a table for each partition of its index when it is trained."""
PROBED = 0.75
"""Share of the partitions that a search looks into.

Of 390,000 MiniLM vectors a quarter had 97.5 % of the ten nearest, half 99.2 % and three quarters all of them, for about
the same processor time: fetching the candidates costs more than scanning codes.
"""
LEAST_PROBED = 64
"""Partitions that a search always looks into, where there are so many."""
SPARE = 50
"""Candidates beyond twice the number wanted: the index orders them by codes of 5 bits a dimension."""

_COLUMNS = ("key", "vector")


class StoredVectors:
    """Search in a Lance table pinned at one version (see Vectors); in memory is one byte an item.

    The candidates come from the table's index, and rows that it does not cover yet are all looked at; their exact
    scores decide. So a search may miss items, never report a wrong score, and what it misses depends on the history of
    the index. A table without an index is searched whole.
    """

    __slots__ = ("_live", "_numbers", "d", "dataset", "n_live")

    def __init__(self, dataset: Any, numbers: Numbers, live: Mask) -> None:
        self.dataset = dataset
        """The table; its rows are those of the items that `live` marks."""
        self.d: int = dataset.schema.field("vector").type.list_size
        self._numbers = numbers
        self._live = live
        self.n_live = int(np.count_nonzero(live))

    def moved(self, dataset: Any, born: Int64s, dead: Int64s) -> StoredVectors:
        """The version for the table at another version, in which items came and went; copies one byte an item."""
        live = np.zeros(max(len(self._live), int(born.max(initial=-1)) + 1), np.bool_)
        live[: len(self._live)] = self._live
        live[dead] = False
        live[born] = True
        return StoredVectors(dataset, self._numbers, live)

    def has(self, items: Int64s) -> Mask:
        """See Vectors."""
        return marked(items, self._live) & (items >= 0)

    def scores(self, items: ArrayLike, q: Float64s) -> Float64s:
        """See Vectors; fetches the vectors."""
        asked = np.asarray(items, dtype=np.int64)
        missing = asked[~self.has(asked)]
        if len(missing):
            raise StoreError(f"item {missing[0]} has no vector", hint="Score items of the same snapshot only.")
        q = question(q, self.d)
        if not len(asked):
            return np.zeros(0, np.float64)
        wanted = np.unique(asked)
        found, vectors = self._read(read_columns(self.dataset, [self._numbers.keys[i] for i in wanted], _COLUMNS))
        order = np.argsort(found)
        return exact_scores(vectors, order[np.searchsorted(found[order], asked)], q)

    def search(
        self, q: Float64s, k: int, *, positive: bool = False, among: Mask | None = None
    ) -> tuple[Int64s, Float64s]:
        """See Vectors; of the items that score as high as the k-th some may be missing."""
        asked = question(q, self.d)
        chosen = None if among is None else self._marked(among)
        allowed = self.n_live if chosen is None else len(chosen)
        if k <= 0 or not allowed:
            return NOTHING
        wanted = 2 * k + SPARE
        if chosen is not None and allowed <= wanted:
            return best(chosen, self.scores(chosen, asked), k, positive)
        while True:
            items, vectors = self._candidates(asked, wanted)
            rows = np.arange(len(items)) if among is None else np.flatnonzero(marked(items, among))
            # Where few of the candidates are marked, more are asked for, in the end all.
            if len(rows) >= min(k, allowed) or wanted >= self.n_live:
                return best(items[rows], exact_scores(vectors, rows, asked), k, positive)
            wanted *= 4

    def _marked(self, among: Mask) -> Int64s:
        both = min(len(among), len(self._live))
        return np.flatnonzero(self._live[:both] & among[:both])

    def _candidates(self, q: Float64s, count: int) -> tuple[Int64s, Float32s]:
        probes = max(LEAST_PROBED, int(PROBED * self.n_live / ROWS_PER_PARTITION))
        near = {"column": "vector", "q": q.astype(np.float32), "k": count, "nprobes": probes, "metric": "dot"}
        try:
            found = self.dataset.scanner(columns=[*_COLUMNS, "_distance"], nearest=near).to_table()
        except (OSError, RuntimeError, ValueError) as error:
            uri, version = self.dataset.uri, self.dataset.version
            raise StoreError(f"{uri} cannot be searched at version {version}: {error}") from error
        return self._read(found)

    def _read(self, rows: Any) -> tuple[Int64s, Float32s]:
        return self._numbers.of(rows["key"].to_pylist()), records.matrix(rows["vector"])
