"""A coarse copy of vectors, a byte a number: it tells in a tenth of the time which rows may be among the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled

Codes = NDArray[np.int8]
Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MOST = 127
"""Of a stored number; a question's numbers are finer, as far as a sum of d products stays below 2³¹."""


@compiled
def encode(vectors: NDArray[np.float32], codes: Codes, steps: Float64s) -> None:
    """Write the codes (m, d) and steps (m,) of vectors (m, d): number i of a row is about step * code."""
    for row in range(len(vectors)):
        largest = 0.0
        for i in range(vectors.shape[1]):
            largest = max(largest, abs(np.float64(vectors[row, i])))
        steps[row] = largest / _MOST
        for i in range(vectors.shape[1]):
            codes[row, i] = np.int8(np.rint(vectors[row, i] / steps[row])) if largest > 0 else np.int8(0)


@compiled
def _products(codes: Codes, q: NDArray[np.int16]) -> NDArray[np.int32]:
    # Nothing else in this loop: it is what becomes one instruction for many numbers.
    sums = np.empty(len(codes), np.int32)
    for row in range(len(codes)):
        total = np.int32(0)
        for i in range(len(q)):
            total += np.int32(codes[row, i]) * np.int32(q[i])
        sums[row] = total
    return sums


@compiled
def _reaching(
    sums: NDArray[np.int32], steps: Float64s, live: Mask, step: float, slope: float, least: float, k: int
) -> Int64s:
    kth = np.full(k, -np.inf)
    for row in range(len(sums)):
        low = sums[row] * steps[row] * step - (steps[row] * slope + least)
        if low > kth[0] and live[row]:
            # The k largest so far, ascending: few rows get here once the first have been seen.
            at = 0
            while at + 1 < k and kth[at + 1] < low:
                kth[at] = kth[at + 1]
                at += 1
            kth[at] = low
    found = np.empty(len(sums), np.int64)
    n = 0
    for row in range(len(sums)):
        if sums[row] * steps[row] * step + (steps[row] * slope + least) >= kth[0] and live[row]:
            found[n] = row
            n += 1
    return found[:n].copy()


def reaching(codes: Codes, steps: Float64s, live: Mask, q: Float64s, k: int) -> Int64s:
    """The live ones among rows (m, d) of length 1 at most that may be among the k of largest product with a vector q
    (d,); more than k rows must be live.

    With x = s·c + e, |eᵢ| ≤ s/2, and q = t·p + f, |fᵢ| ≤ t/2: |x·q - st·c·p| = |e·q + s·c·f| ≤ s/2·‖q‖₁ + ‖s·c‖₁·t/2,
    and ‖s·c‖₁ ≤ ‖x‖₁ + d·s/2 ≤ √d + d·s/2. So it is known between which two numbers a product lies, and a row counts
    where the upper one reaches the k-th of the lower ones.
    """
    d = len(q)
    step = float(np.abs(q).max()) / min(2**15 - 1, (2**31 - 1) // (_MOST * d))
    if step == 0:
        return np.flatnonzero(live)
    # A thousandth more for rows that are a little longer than 1, and for what rounding adds to all this.
    slope = 1.002 * (float(np.abs(q).sum()) / 2 + d * step / 4)
    least = 1.002 * d**0.5 * step / 2 + 1e-9
    return _reaching(_products(codes, np.rint(q / step).astype(np.int16)), steps, live, step, slope, least, k)
