"""Why these passages: what a mode saw, told in names, facts and words instead of numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from index.snapshot import Snapshot
from index.types import Entity, Fact

from .explain_fused import FusedTold
from .explanation import ActiveEntity, Explanation, MatchingTerm, NearFact, QuestionRead, SeedEntity, Why
from .modes.base import Ranking, best_first
from .modes.bm25 import BM25Trace
from .modes.cogito import CogitoTrace, Reading
from .modes.cognirank import Chosen
from .modes.dense import DenseTrace
from .modes.fused import FusedTrace
from .modes.hybrid import HybridTrace

SHOWN = 20
"""Entities told of a question or of a passage: the most active ones."""


def explain(snapshot: Snapshot, ranking: Ranking[object]) -> tuple[Explanation, dict[int, Why]]:
    """The explanation of a ranking, and of each passage in it by number; `snapshot` is the one it was made on."""
    passages = [passage for passage, _ in ranking.found]
    match ranking.trace:
        case DenseTrace():
            return Explanation(), {passage: Why(cosine=score) for passage, score in ranking.found}
        case BM25Trace() as trace:
            return Explanation(), {passage: Why(terms=_terms(trace, passage)) for passage in passages}
        case HybridTrace() as trace:
            return Explanation(), _joined(trace, passages)
        case FusedTrace() as trace:
            return FusedTold(snapshot, trace, ranking.found).told()
        case CogitoTrace() as trace:
            return _Cogito(snapshot, trace).told()
    raise TypeError(f"nobody wrote how to explain a {type(ranking.trace).__name__}")


def _terms(trace: BM25Trace, passage: int) -> list[MatchingTerm]:
    weights = ((term.term, term.weight(passage)) for term in trace.terms)
    return [MatchingTerm(term=term, weight=weight) for term, weight in weights if weight]


def _joined(trace: HybridTrace, passages: list[int]) -> dict[int, Why]:
    cosines = dict(trace.dense.found)
    ranks = {
        name: {passage: rank for rank, (passage, _) in enumerate(found, start=1)}
        for name, found in (("dense", trace.dense.found), ("bm25", trace.bm25.found))
    }
    return {
        passage: Why(
            cosine=cosines.get(passage),
            ranks={name: rank[passage] for name, rank in ranks.items() if passage in rank},
            terms=_terms(trace.bm25.trace, passage),
        )
        for passage in passages
    }


class _Cogito:
    """Puts names to the numbers of a trace; reads every row it needs once."""

    def __init__(self, snapshot: Snapshot, trace: CogitoTrace) -> None:
        self.snapshot, self.trace = snapshot, trace
        self.active = [_most_active(snapshot, reading) for reading in trace.readings]
        self.mentions = {chosen.passage: self._mentioned(chosen) for chosen in trace.chosen}
        facts = {fact for reading in trace.readings for fact, _ in reading.facts}
        self.facts: Mapping[int, Fact] = snapshot.fact_rows(facts)
        entities = {int(end) for fact in facts for end in snapshot.endpoints[fact]}
        entities.update(entity for masses in (*self.active, *self.mentions.values()) for entity in masses)
        self.entities: Mapping[int, Entity] = snapshot.entity_rows(entities)

    def told(self) -> tuple[Explanation, dict[int, Why]]:
        questions = [self._question(*pair) for pair in zip(self.trace.readings, self.active, strict=True)]
        return Explanation(questions=questions), {chosen.passage: self._why(chosen) for chosen in self.trace.chosen}

    def _question(self, reading: Reading, active: Mapping[int, float]) -> QuestionRead:
        start = dict(zip(reading.spread.seeds.tolist(), reading.spread.start.tolist(), strict=True))
        return QuestionRead(
            question=reading.question,
            fallback=reading.fallback,
            facts=[
                NearFact(fact=self.facts[fact].surface, similarity=similarity) for fact, similarity in reading.facts
            ],
            seeds=[
                SeedEntity(
                    entity=self.entities[seed.entity].name,
                    start=start[2 * seed.entity],
                    hits=seed.hits,
                    similarity=seed.fact,
                    passages=seed.n_v,
                )
                for seed in reading.seeds
            ],
            entities=self._named(active),
            error=reading.spread.error,
        )

    def _why(self, chosen: Chosen) -> Why:
        reading, mentioned = self.trace.readings[chosen.ranking], self.mentions[chosen.passage]
        at = int(np.flatnonzero(reading.ranked.passages == chosen.passage)[0])
        leading = [(fact, similarity, self._shared(fact, chosen.passage)) for fact, similarity in reading.facts]
        return Why(
            cosine=float(reading.ranked.similarity[at]),
            mass=float(reading.ranked.s_diff[at]),
            facts=[
                NearFact(fact=self.facts[fact].surface, similarity=similarity, via=via)
                for fact, similarity, via in leading
                if via
            ],
            entities=self._named(mentioned),
            question=chosen.ranking + 1,
            complement=chosen.complement,
        )

    def _mentioned(self, chosen: Chosen) -> dict[int, float]:
        nodes, _ = self.snapshot.graph.row(2 * chosen.passage + 1)
        return _heaviest(self.snapshot, self.trace.readings[chosen.ranking], nodes.astype(np.int64))

    def _shared(self, fact: int, passage: int) -> list[str]:
        nodes, _ = self.snapshot.graph.row(2 * passage + 1)
        ends = dict.fromkeys(self.snapshot.endpoints[fact].tolist())
        return [self.entities[end].name for end in ends if 2 * end in nodes]

    def _named(self, masses: Mapping[int, float]) -> list[ActiveEntity]:
        return [ActiveEntity(entity=self.entities[entity].name, mass=mass) for entity, mass in masses.items()]


def _most_active(snapshot: Snapshot, reading: Reading) -> dict[int, float]:
    return _heaviest(snapshot, reading, reading.spread.nodes[reading.spread.nodes % 2 == 0])


def _heaviest(
    snapshot: Snapshot, reading: Reading, nodes: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> dict[int, float]:
    """Entity numbers of `nodes` (n,) with their mass, the heaviest first; those without any are left out."""
    mass = reading.spread.of(nodes)
    nodes, mass = nodes[mass > 0], mass[mass > 0]
    entities = (nodes // 2).tolist()
    order = best_first([snapshot.kinds.entities.keys[entity] for entity in entities], mass)[:SHOWN]
    return {entities[at]: float(mass[at]) for at in order.tolist()}
