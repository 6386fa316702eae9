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
    summed from left to right and rounded to 12 decimals. Implementations differ in which items a search may miss.
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


def exact_scores(vectors: NDArray[np.floating[Any]], rows: Int64s, q: Float64s) -> Float64s:
    """Cosines (m,) of the rows (m,) of a matrix (n, d) of unit vectors with q (d,), as every Vectors gives them."""
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
