"""An embedder that remembers the last questions: asked again, they cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..types import Role
from .base import Embedder

CAPACITY = 2048
"""Questions; some 3 MB at 384 dimensions."""


class Remembering:
    """The embedder inside, which must know no roles: a mode that reads one question in two roles then pays once.

    For questions, which come one by one and again; passages are kept in the table `understanding`.
    """

    def __init__(self, inside: Embedder, capacity: int = CAPACITY) -> None:
        """`capacity` texts are remembered; the least recently used goes first."""
        self._inside = inside
        self._vector = lru_cache(capacity)(self._ask)

    @property
    def fingerprint(self) -> str:
        return self._inside.fingerprint

    @property
    def dimensions(self) -> int:
        return self._inside.dimensions

    @property
    def alias_threshold(self) -> float | None:
        return self._inside.alias_threshold

    @property
    def remote(self) -> bool:
        return self._inside.remote

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        """See Embedder; what is not remembered is asked text by text. What failed is asked again."""
        rows = [self._vector(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.dimensions)

    def _ask(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._inside.embed([text])[0]
        return vector
