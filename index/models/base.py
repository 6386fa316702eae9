"""What every embedder offers: texts in, rows of unit length out, and a name for what made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..types import Role

ALIAS_THRESHOLD = 0.8
"""Cosine from which two entity names are aliases in a sentence model (CogitoRAG: alias edges)."""


class Embedder(Protocol):
    """Turns texts into vectors; a function of the text and the role, of nothing else.

    Calls may come from several threads at once.
    """

    @property
    def fingerprint(self) -> str:
        """Model, dimensions and every setting that changes a vector: part of the index's fingerprint."""
        ...

    @property
    def dimensions(self) -> int:
        """Length d of every vector."""
        ...

    @property
    def alias_threshold(self) -> float | None:
        """Cosine from which two entity names are aliases; None where this embedder's cosines do not say so."""
        ...

    @property
    def remote(self) -> bool:
        """True where a call is slow or paid, so that its results are worth keeping in the table `understanding`."""
        ...

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        """Vectors (n, d) of `texts`, in their order; unit rows, or all zero where a text has no content.

        Blocks until all are there. The vector of a text does not depend on the others of the call. Raises ModelError
        when one of them cannot be embedded (ModelUnavailable when a later call may succeed); nothing is returned then.
        """
        ...


def unit_rows(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """`vectors` (n, d) scaled to rows of Euclidean length 1; rows of zeros stay. The input must be finite."""
    wide = vectors.astype(np.float64)
    largest = np.abs(wide).max(axis=1, initial=0.0, keepdims=True)
    # Divided by the largest first, so that no square under- or overflows.
    unit: NDArray[np.float64] = np.divide(wide, largest, out=np.zeros_like(wide), where=largest > 0)
    length = np.sqrt(np.einsum("nd,nd->n", unit, unit))[:, None]
    np.divide(unit, length, out=unit, where=length > 0)
    return unit.astype(np.float32)
