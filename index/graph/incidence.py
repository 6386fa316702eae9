"""One relation as a Z-set: sorted (row key, column key) pairs with integer weights that add and cancel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..compiled import compiled
from ..keys import halves, whole
from ..types import Key

SCHEMA = pa.schema(
    [
        ("row_high", pa.uint64()),
        ("row_low", pa.uint64()),
        ("col_high", pa.uint64()),
        ("col_low", pa.uint64()),
        ("weight", pa.int64()),
        ("text", pa.string()),
    ]
)

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Incidence:
    """Entries sorted by (row, column), each pair once, no weight zero.

    Keys are split into native halves (n,) so that comparing numbers compares bytes. `text` (n,) is null except
    where the relation carries a spelling; it is a function of the column key.
    """

    row_high: Words
    row_low: Words
    col_high: Words
    col_low: Words
    weight: NDArray[np.int64]
    text: pa.StringArray

    @classmethod
    @cache
    def empty(cls) -> Incidence:
        """The one without entries; most of a small segment's relations are this."""
        return cls.from_batch(pa.RecordBatch.from_pylist([], schema=SCHEMA))

    @classmethod
    def of(
        cls, rows: Sequence[Key], cols: Sequence[Key], weights: Iterable[int], texts: Sequence[str] | None = None
    ) -> Incidence:
        """Consolidate entries given in any order; equal pairs are summed and zeros dropped."""
        if not rows:
            return cls.empty()
        row_high, row_low = halves(rows)
        col_high, col_low = halves(cols)
        weight = np.fromiter(weights, dtype=np.int64, count=len(rows))
        order = np.lexsort((col_low, col_high, row_low, row_high))
        columns = (row_high[order], row_low[order], col_high[order], col_low[order])
        first, total = _sums(*columns, weight[order])
        text = pa.nulls(len(first), pa.string()) if texts is None else pa.array(texts, pa.string()).take(order[first])
        return cls(columns[0][first], columns[1][first], columns[2][first], columns[3][first], total, text)

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> Incidence:
        """View a record batch of SCHEMA without copying."""
        row_high, row_low, col_high, col_low, weight = (batch.column(i).to_numpy(zero_copy_only=True) for i in range(5))
        return cls(row_high, row_low, col_high, col_low, weight, batch.column(5))

    def to_batch(self) -> pa.RecordBatch:
        numbers = [
            pa.array(column) for column in (self.row_high, self.row_low, self.col_high, self.col_low, self.weight)
        ]
        return pa.RecordBatch.from_arrays([*numbers, self.text], schema=SCHEMA)

    def __len__(self) -> int:
        return len(self.weight)

    def __neg__(self) -> Incidence:
        return Incidence(self.row_high, self.row_low, self.col_high, self.col_low, -self.weight, self.text)

    def __add__(self, other: Incidence) -> Incidence:
        """Merge two sorted sets in linear time; what cancels is gone."""
        if not len(self) or not len(other):
            return self if len(self) else other
        take, total = _merge(
            self.row_high, self.row_low, self.col_high, self.col_low, self.weight,
            other.row_high, other.row_low, other.col_high, other.col_low, other.weight,
        )  # fmt: skip
        return Incidence(
            np.concatenate([self.row_high, other.row_high])[take],
            np.concatenate([self.row_low, other.row_low])[take],
            np.concatenate([self.col_high, other.col_high])[take],
            np.concatenate([self.col_low, other.col_low])[take],
            total,
            pa.concat_arrays([self.text, other.text]).take(pa.array(take)),
        )

    def rows(self) -> list[Key]:
        """Row key of each entry (n,)."""
        return whole(self.row_high, self.row_low)

    def cols(self) -> list[Key]:
        """Column key of each entry (n,)."""
        return whole(self.col_high, self.col_low)

    def select(self, rows: Sequence[Key]) -> Incidence:
        """The entries of these rows, each named once; logarithmic in the size of the set."""
        high, low = halves(rows)
        start = np.searchsorted(self.row_high, high, side="left")
        stop = np.searchsorted(self.row_high, high, side="right")
        counts = stop - start
        entries = np.repeat(start - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        entries = np.sort(entries[self.row_low[entries] == np.repeat(low, counts)])
        return Incidence(
            self.row_high[entries],
            self.row_low[entries],
            self.col_high[entries],
            self.col_low[entries],
            self.weight[entries],
            self.text.take(pa.array(entries)),
        )


def _sums(
    row_high: Words, row_low: Words, col_high: Words, col_low: Words, weight: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First entry and summed weight of every run of equal pairs whose sum is not zero."""
    if not len(weight):
        return np.empty(0, np.int64), weight
    new = np.ones(len(weight), dtype=bool)
    new[1:] = np.diff(row_high) != 0
    for column in (row_low, col_high, col_low):
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    total = np.add.reduceat(weight, first)
    return first[total != 0], total[total != 0]


@compiled
def _merge(
    ah: Words, al: Words, ac: Words, ad: Words, aw: NDArray[np.int64],
    bh: Words, bl: Words, bc: Words, bd: Words, bw: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Positions in the concatenation (a, b) and weights of the merged set."""
    take = np.empty(len(aw) + len(bw), np.int64)
    total = np.empty(len(aw) + len(bw), np.int64)
    i = j = n = 0
    while i < len(aw) or j < len(bw):
        if j == len(bw):
            side = -1
        elif i == len(aw):
            side = 1
        elif ah[i] != bh[j]:
            side = -1 if ah[i] < bh[j] else 1
        elif al[i] != bl[j]:
            side = -1 if al[i] < bl[j] else 1
        elif ac[i] != bc[j]:
            side = -1 if ac[i] < bc[j] else 1
        elif ad[i] != bd[j]:
            side = -1 if ad[i] < bd[j] else 1
        else:
            side = 0
        if side == 0:
            if aw[i] + bw[j] != 0:
                take[n], total[n] = i, aw[i] + bw[j]
                n += 1
            i += 1
            j += 1
        elif side < 0:
            take[n], total[n] = i, aw[i]
            n += 1
            i += 1
        else:
            take[n], total[n] = len(aw) + j, bw[j]
            n += 1
            j += 1
    return take[:n], total[:n]
