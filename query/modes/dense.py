"""`dense`: the passages whose vectors are nearest to the question's, by exact cosine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from index.attributes import Mask
from index.snapshot import Snapshot
from index.types import Question, Role

from .base import Float64s, Int64s, Ranking, Scored, best_first, passage_keys


@dataclass(frozen=True, slots=True)
class DenseTrace:
    """The score is the cosine; there is nothing else to tell."""


@dataclass(frozen=True, slots=True)
class DenseMode:
    """Exact search: every living passage is compared, so the answer does not depend on the history of the index."""

    roles: ClassVar[tuple[Role, ...]] = ("passage-question",)

    def rank(self, snapshot: Snapshot, question: Question, k: int, eligible: Mask | None = None) -> Ranking[DenseTrace]:
        """See Mode."""
        numbers, cosines = nearest_passages(snapshot, question.to_passages, k, eligible)
        return Ranking(tuple(map(Scored, numbers.tolist(), cosines.tolist())), DenseTrace())


def nearest_passages(snapshot: Snapshot, q: Float64s, k: int, eligible: Mask | None = None) -> tuple[Int64s, Float64s]:
    """Numbers and cosines (m,), m ≤ k, of the eligible passages nearest to a unit vector q (d,); ties by key.

    A question without content is the zero vector, equally near to everything: it finds nothing.
    """
    if not np.any(q):
        return np.empty(0, np.int64), np.empty(0)
    numbers, cosines = snapshot.passages.search(q, k, among=eligible)
    order = best_first(passage_keys(snapshot, numbers), cosines)[:k]
    return numbers[order], cosines[order]
