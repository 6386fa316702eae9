"""From the facts nearest to a question to the entities that they light up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from index.snapshot import Snapshot

from .base import Float64s


class NearFact(NamedTuple):
    """A fact, by its number in the snapshot, and its cosine with the question."""

    fact: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Seed:
    """An entity that facts near the question name."""

    entity: int
    hits: int
    """c_v: how many of the facts name it; one that names it at both ends counts once."""
    fact: float
    """fact(v): mean similarity of these facts."""
    reward: float
    """reward(v) = 1 + α(1 − e^{−β c_v})."""
    n_v: int
    """Passages that mention it."""
    weight: float
    """π̃₀(v) = fact(v)·reward(v) / max(1, n_v)."""


def nearest_facts(snapshot: Snapshot, q: Float64s, k: int) -> tuple[NearFact, ...]:
    """At most `k` facts of largest positive cosine with a unit vector q (d,), best first; ties by normal forms."""
    numbers, cosines = snapshot.facts.search(q, k, positive=True)
    near = [NearFact(*pair) for pair in zip(numbers.tolist(), cosines.tolist(), strict=True)]
    if len(np.unique(cosines)) < len(near):
        # Only a tie needs the rows: reading them costs more than the search.
        rows = snapshot.fact_rows(numbers.tolist())
        near.sort(key=lambda fact: (-fact.similarity, rows[fact.fact].norms))
    return tuple(near[:k])


def activated(snapshot: Snapshot, facts: Sequence[NearFact], alpha: float, beta: float) -> tuple[Seed, ...]:
    """The entities that `facts` name, in order of sight (CogitoRAG eq. 13 to 15)."""
    similarities: defaultdict[int, list[float]] = defaultdict(list)
    for number, similarity in facts:
        for entity in dict.fromkeys(snapshot.endpoints[number].tolist()):
            similarities[entity].append(similarity)
    return tuple(_seed(snapshot, entity, near, alpha, beta) for entity, near in similarities.items())


def _seed(snapshot: Snapshot, entity: int, similarities: Sequence[float], alpha: float, beta: float) -> Seed:
    hits, n_v = len(similarities), len(snapshot.mentioning(entity))
    fact = sum(similarities) / hits
    reward = 1 + alpha * -float(np.expm1(-beta * hits))
    return Seed(entity, hits, fact, reward, n_v, fact * reward / max(1, n_v))
