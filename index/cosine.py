"""`Vectors`: the contract of every search by cosine, and the sums and orders that all of them share."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .compiled import compiled
from .errors import BadRequest

Int64s = NDArray[np.int64]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Mask = NDArray[np.bool_]

DECIMALS = 12
"""Scores are rounded to this, below any difference that means something and above what a sum of float64 can lose."""

NOTHING: tuple[Int64s, Float64s] = (np.zeros(0, np.int64), np.zeros(0, np.float64))
"""What a search gives that can find nothing."""


class Vectors(Protocol):
    """Float32 vectors (d,) of unit length, or zero, each of one item (a dense number); an item has at most one.

    A version never changes; any number of threads may read it. Every score is the exact cosine: a float64 dot product,
    summed in the same order for every row and rounded to 12 decimals. Implementations differ in which items a search
    may miss.
    """

    @property
    def n_live(self) -> int:
        """Items that have a vector."""
        ...

    def has(self, items: Int64s) -> Mask:
        """Which of the items (m,) have a vector."""
        ...

    def scores(self, items: ArrayLike, q: Float64s) -> Float64s:
        """Exact cosines (m,) of items (m,) with a unit vector q (d,); raises StoreError for an item without one."""
        ...

    def search(
        self, q: Float64s, k: int, *, positive: bool = False, among: Mask | None = None
    ) -> tuple[Int64s, Float64s]:
        """The k items of largest cosine with a unit vector q (d,) and their scores, (m,) each, best first.

        Items that score as high as the k-th belong to them, so m may pass k; equal scores are in order of item, and the
        caller breaks ties by key. With `positive` only items that score above zero count, with `among` only those whose
        number it marks; numbers beyond its end are not marked. Raises BadRequest for a question that is not d finite
        numbers.
        """
        ...


@compiled
def _sum_products(vectors: NDArray[np.floating[Any]], rows: Int64s, q: Float64s) -> Float64s:
    sums = np.zeros(len(rows), np.float64)
    for at in range(len(rows)):
        for i in range(len(q)):
            sums[at] += np.float64(vectors[rows[at], i]) * q[i]
    return sums


@compiled
def _sum_half_products(bits: NDArray[np.uint16], rows: Int64s, q: Float64s) -> Float64s:
    """The same for float16 rows, given as their bits: read where they lie, which a copy to float32 takes thrice as
    long as.

    Without its exponent's bias a float16 is a float32 that is 2^112 times smaller, exactly. Eight sums side by side, in
    one order for every row.
    """
    d = len(q)
    sums = np.zeros(len(rows), np.float64)
    raw = np.empty(d, np.uint32)
    small = raw.view(np.float32)
    for at in range(len(rows)):
        row = rows[at]
        for i in range(d):
            half = np.uint32(bits[row, i])
            raw[i] = ((half & np.uint32(0x7FFF)) << np.uint32(13)) | ((half & np.uint32(0x8000)) << np.uint32(16))
        a = b = c = e = f = g = h = j = 0.0
        for i in range(0, d - 7, 8):
            a += small[i] * q[i]
            b += small[i + 1] * q[i + 1]
            c += small[i + 2] * q[i + 2]
            e += small[i + 3] * q[i + 3]
            f += small[i + 4] * q[i + 4]
            g += small[i + 5] * q[i + 5]
            h += small[i + 6] * q[i + 6]
            j += small[i + 7] * q[i + 7]
        total = ((a + b) + (c + e)) + ((f + g) + (h + j))
        for i in range(d // 8 * 8, d):
            total += small[i] * q[i]
        sums[at] = total * 2.0**112
    return sums


def exact_scores(vectors: NDArray[np.floating[Any]], rows: Int64s, q: Float64s) -> Float64s:
    """Dot products (m,) of the rows (m,) of a matrix (n, d) of unit vectors with q (d,), as every Vectors gives them.

    The matrix is float32 or float16.
    """
    if vectors.dtype == np.float16:
        return np.round(_sum_half_products(vectors.view(np.uint16), rows, q), DECIMALS)
    return np.round(_sum_products(vectors, rows, q), DECIMALS)


def question(q: Float64s, d: int) -> Float64s:
    """A question's vector, checked: (d,). Raises BadRequest unless it is that many finite numbers."""
    asked = np.ascontiguousarray(q, dtype=np.float64)
    if asked.shape != (d,) or not np.isfinite(asked).all():
        raise BadRequest(
            f"a question of shape {asked.shape} is not {d} finite numbers",
            hint="Embed it with the model of this index.",
        )
    return asked


def marked(items: Int64s, among: Mask) -> Mask:
    """Which of the items (m,) a mask marks; numbers beyond its end are not marked."""
    inside = items < len(among)
    inside[inside] = among[items[inside]]
    return inside


def best(items: Int64s, scores: Float64s, k: int, positive: bool) -> tuple[Int64s, Float64s]:
    """Of items and their exact scores, (n,) each, what a search gives; see Vectors."""
    if positive:
        items, scores = items[scores > 0], scores[scores > 0]
    if len(scores) > k:
        reached = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        items, scores = items[reached], scores[reached]
    order = np.lexsort((items, -scores))
    return items[order], scores[order]
