"""`hybrid`: dense and bm25 side by side, joined by the ranks they give."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from index.attributes import Mask
from index.snapshot import Snapshot
from index.types import Question, Role

from .base import Ranking, leading
from .bm25 import BM25Mode, BM25Trace
from .dense import DenseMode, DenseTrace


@dataclass(frozen=True, slots=True)
class HybridTrace:
    """The two rankings that were joined."""

    dense: Ranking[DenseTrace]
    bm25: Ranking[BM25Trace]


@dataclass(frozen=True, slots=True)
class HybridMode:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): score(p) = Σ over rankings of 1/(constant + rank(p)).

    Ranks count from 1; a ranking counts down to rank `depth`.
    """

    roles: ClassVar[tuple[Role, ...]] = DenseMode.roles

    dense: DenseMode = field(default_factory=DenseMode)
    bm25: BM25Mode = field(default_factory=BM25Mode)
    constant: float = 60.0
    depth: int = 100

    def rank(
        self, snapshot: Snapshot, question: Question, k: int, eligible: Mask | None = None
    ) -> Ranking[HybridTrace]:
        """See Mode; ranks count eligible passages only."""
        trace = HybridTrace(
            self.dense.rank(snapshot, question, self.depth, eligible),
            self.bm25.rank(snapshot, question, self.depth, eligible),
        )
        fused: defaultdict[int, float] = defaultdict(float)
        for found in (trace.dense.found, trace.bm25.found):
            for rank, (passage, _) in enumerate(found, start=1):
                fused[passage] += 1 / (self.constant + rank)
        numbers, scores = np.array([*fused], np.int64), np.array([*fused.values()])
        return Ranking(leading(snapshot, numbers, scores, k), trace)
