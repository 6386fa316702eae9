"""`cogito`: CogitoRAG's reading: facts light up entities, a walk spreads the light, CogniRank orders the passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from index.attributes import Mask
from index.snapshot import Snapshot
from index.types import Question, Role

from .activation import NearFact, Seed, activated, nearest_facts
from .base import Int64s, Ranking, Scored
from .cognirank import Chosen, Ranked, candidates, cogni_rank, merge
from .dense import nearest_passages
from .walk import NOWHERE, Spread, Walk


@dataclass(frozen=True, slots=True)
class Reading:
    """What one sub-question saw, stage by stage."""

    question: str
    facts: tuple[NearFact, ...]
    seeds: tuple[Seed, ...]
    passage_seeds: tuple[Scored, ...]
    """π̃₀(p) of the passages that seed the walk."""
    spread: Spread
    candidates: Int64s
    """𝒫_c in order of (S_diff, σ, key)."""
    ranked: Ranked

    @property
    def fallback(self) -> str | None:
        """`dense` where no fact lit up an entity: the order is then that of similarity alone."""
        return None if self.seeds else "dense"


@dataclass(frozen=True, slots=True)
class CogitoTrace:
    """Every sub-question's reading, and which of them chose each passage of the answer."""

    readings: tuple[Reading, ...]
    chosen: tuple[Chosen, ...]


@dataclass(frozen=True, slots=True)
class CogitoMode:
    """The online stage of CogitoRAG, "Understand Then Memory" (§ 4.3); no step calls a model.

    Names and defaults are the paper's; where it gives no figure, those of the authors' release.
    """

    roles: ClassVar[tuple[Role, ...]] = ("fact-question", "passage-question")

    fact_k: int = 5
    """K of eq. 12: facts that light up entities."""
    alpha: float = 2.0
    beta: float = 1.0
    """Reward for entities that several facts name (eq. 14)."""
    walk: Walk = field(default_factory=Walk)
    epsilon: float = 0.95
    """Share of the walk in the score; the rest is similarity (eq. 18)."""
    delta: float = 1e-12
    candidate_k: int = 200
    passage_seed_weight: float = 0.05
    """ρ: passages seed the walk with this share of their similarity, as in the authors' release."""
    passage_seed_top: int = 200

    def rank(
        self, snapshot: Snapshot, question: Question, k: int, eligible: Mask | None = None
    ) -> Ranking[CogitoTrace]:
        """See Mode; the walk passes through all, candidates are eligible passages only."""
        return self.rank_split(snapshot, [question], k, eligible)

    def rank_split(
        self, snapshot: Snapshot, parts: Sequence[Question], k: int, eligible: Mask | None = None
    ) -> Ranking[CogitoTrace]:
        """Rank for a question that was split into `parts` (at least one), each read alone, then merged.

        Passages are in the order in which they were chosen, so scores of different parts stand side by side.
        """
        readings = tuple(self._read(snapshot, part, eligible) for part in parts)
        chosen = tuple(merge(snapshot, [reading.ranked for reading in readings], k))
        notes = {"fallback": "dense"} if any(reading.fallback for reading in readings) else {}
        return Ranking(tuple(Scored(c.passage, c.score) for c in chosen), CogitoTrace(readings, chosen), notes)

    def _read(self, snapshot: Snapshot, question: Question, eligible: Mask | None) -> Reading:
        q = question.to_passages
        facts = nearest_facts(snapshot, question.to_facts, self.fact_k)
        seeds = activated(snapshot, facts, self.alpha, self.beta)
        passage_seeds: tuple[Scored, ...] = ()
        spread = NOWHERE
        if seeds:
            passage_seeds = self._passage_seeds(snapshot, question)
            nodes = [*(2 * seed.entity for seed in seeds), *(2 * seed.passage + 1 for seed in passage_seeds)]
            weights = [*(seed.weight for seed in seeds), *(seed.score for seed in passage_seeds)]
            spread = self.walk.spread(snapshot, np.array(nodes, np.int64), np.array(weights))
        among = candidates(snapshot, spread, q, self.candidate_k, eligible)
        ranked = cogni_rank(snapshot, among, spread, q, self.epsilon, self.delta)
        return Reading(question.text, facts, seeds, passage_seeds, spread, among, ranked)

    def _passage_seeds(self, snapshot: Snapshot, question: Question) -> tuple[Scored, ...]:
        if not self.passage_seed_weight:
            return ()
        numbers, cosines = nearest_passages(snapshot, question.to_passages, self.passage_seed_top)
        weights = (self.passage_seed_weight * cosines).tolist()
        return tuple(Scored(*pair) for pair in zip(numbers.tolist(), weights, strict=True) if pair[1] > 0)


PAPER = CogitoMode(passage_seed_weight=0.0)
"""The paper to the letter: only entities seed the walk."""
