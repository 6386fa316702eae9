"""A coarse copy of vectors, a byte a number: it tells in a tenth of the time which rows may be among the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled

Codes = NDArray[np.int8]

_MOST = 127
"""Of a stored number; a question's numbers are finer, as far as a sum of d products stays below 2³¹."""


@compiled
def encode(vectors: NDArray[np.float32], codes: Codes, steps: NDArray[np.float64]) -> None:
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
    sums = np.empty(len(codes), np.int32)
    for row in range(len(codes)):
        total = np.int32(0)
        for i in range(len(q)):
            total += np.int32(codes[row, i]) * np.int32(q[i])
        sums[row] = total
    return sums


def bounds(
    codes: Codes, steps: NDArray[np.float64], q: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """About the dot products (m,) of rows (m, d) of length 1 at most with a vector q (d,), and by how much at most each
    is wrong.

    With x = s·c + e, |eᵢ| ≤ s/2, and q = t·p + f, |fᵢ| ≤ t/2: |x·q − st·c·p| = |e·q + s·c·f| ≤ s/2·‖q‖₁ + ‖s·c‖₁·t/2,
    and ‖s·c‖₁ ≤ ‖x‖₁ + d·s/2 ≤ √d + d·s/2.
    """
    d = len(q)
    step = float(np.abs(q).max()) / min(2**15 - 1, (2**31 - 1) // (_MOST * d))
    if step == 0:
        return np.zeros(len(codes)), np.zeros(len(codes))
    rough = _products(codes, np.rint(q / step).astype(np.int16)) * (steps * step)
    wrong = steps * (float(np.abs(q).sum()) / 2 + d * step / 4) + d**0.5 * step / 2
    # A thousandth more for rows that are a little longer than 1, and for what rounding adds to all this.
    return rough, 1.002 * wrong + 1e-9
