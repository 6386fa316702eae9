"""Alias edges: pairs of living entities whose names mean the same, kept exact while entities are born and die."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .types import Entity, Key

SCALE = 10_000
"""Similarities are integers in 1/10,000, so that their sums are exact in any order."""

_DIGITS = re.compile(r"\d+")
_MARGIN = 1e-3
"""Float32 products may fall this far below the true cosine; candidates are verified in float64."""
_BLOCK = 512

Edges = dict[tuple[Key, Key], int]
"""(entity, entity), both directions -> similarity in 1/10,000."""


class Aliases:
    """Vectors of all living entities and the predicate between them (CogitoRAG step 7, D6).

    u and v are aliases where round(cos, 4) reaches the threshold, both normal forms have more than two letters or
    digits, and their groups of digits are the same. It is a predicate on pairs, never a top-k, so the order of
    insertion cannot matter. One birth costs one product with all living entities.
    """

    def __init__(self, dimensions: int, threshold: float, same_digits: bool) -> None:
        self._least = round(threshold * SCALE)
        self._same_digits = same_digits
        self._rows: dict[Key, int] = {}
        self._keys: list[Key | None] = []
        self._groups: list[str] = []
        self._free: list[int] = []
        self._vectors = np.zeros((1024, dimensions), np.float32)

    def kill(self, entities: Iterable[Key]) -> None:
        for entity in entities:
            row = self._rows.pop(entity, None)
            if row is not None:
                self._vectors[row] = 0
                self._keys[row] = None
                self._free.append(row)

    def bear(self, entities: Sequence[Entity], vectors: NDArray[np.float32]) -> None:
        """Let entities live with these vectors (n, d)."""
        for entity, vector in zip(entities, vectors, strict=True):
            if sum(map(str.isalnum, entity.norm)) <= 2:
                continue
            row = self._free.pop() if self._free else self._new_row()
            self._rows[entity.key] = row
            self._keys[row] = entity.key
            self._groups[row] = " ".join(_DIGITS.findall(entity.norm)) if self._same_digits else ""
            self._vectors[row] = vector

    def edges(self, entities: Iterable[Key]) -> Edges:
        """All edges of these living entities, in both directions."""
        rows = [self._rows[entity] for entity in entities if entity in self._rows]
        found: Edges = {}
        for start in range(0, len(rows), _BLOCK):
            block = np.array(rows[start : start + _BLOCK])
            near = self._vectors[block] @ self._vectors[: len(self._keys)].T >= self._least / SCALE - _MARGIN
            left, right = np.nonzero(near)
            found.update(self._verified(block[left], right))
        return found

    def _verified(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> Edges:
        apart = left != right
        left, right = left[apart], right[apart]
        products = self._vectors[left].astype(np.float64) * self._vectors[right].astype(np.float64)
        similarity = np.rint(products.sum(axis=1) * SCALE).astype(np.int64)
        edges: Edges = {}
        for u, v, s in zip(left.tolist(), right.tolist(), similarity.tolist(), strict=True):
            one, other = self._keys[u], self._keys[v]
            if s >= self._least and one is not None and other is not None and self._groups[u] == self._groups[v]:
                edges[one, other] = edges[other, one] = s
        return edges

    def _new_row(self) -> int:
        if len(self._keys) == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._keys.append(None)
        self._groups.append("")
        return len(self._keys) - 1


def difference(old: Mapping[tuple[Key, Key], int], new: Mapping[tuple[Key, Key], int]) -> Edges:
    """What must be added to `old` to make `new`; zeros left out."""
    pairs = {*old, *new}
    return {pair: change for pair in pairs if (change := new.get(pair, 0) - old.get(pair, 0))}
