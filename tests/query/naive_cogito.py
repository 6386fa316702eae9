"""CogitoRAG over a handful of passages, written down from the formulas with dense matrices and no index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from index.models.base import Embedder
from index.types import Passage

Float64s = NDArray[np.float64]


class Naive(NamedTuple):
    """Per passage, in the order given, (n,)."""

    s_diff: Float64s
    score: Float64s


def read(
    passages: Sequence[Passage],
    embedder: Embedder,
    question: str,
    *,
    fact_k: int = 5,
    alpha: float = 2.0,
    beta: float = 1.0,
    gamma: float = 0.5,
    epsilon: float = 0.95,
    rho: float = 0.05,
) -> Naive:
    """Every passage is a candidate, no edge is an alias, and every name must be its own normal form."""
    q = embedder.embed([question])[0].astype(np.float64)
    facts = sorted({triple for passage in passages for triple in passage.extraction.triples})
    names = sorted({name for head, _, tail in facts for name in (head, tail)})
    of_facts = _cosines(embedder, [" ".join(fact) for fact in facts], q)
    of_passages = _cosines(embedder, [passage.text for passage in passages], q)

    near = sorted((j for j in range(len(facts)) if of_facts[j] > 0), key=lambda j: (-of_facts[j], facts[j]))[:fact_k]
    mentions = np.zeros((len(names), len(passages)))
    for j, passage in enumerate(passages):
        for head, _, tail in passage.extraction.triples:
            mentions[names.index(head), j] = mentions[names.index(tail), j] = 1
    start = np.zeros(len(names) + len(passages))
    for i, name in enumerate(names):
        similar = [of_facts[j] for j in near if name in (facts[j][0], facts[j][2])]
        if similar:
            reward = 1 + alpha * (1 - np.exp(-beta * len(similar)))
            start[i] = sum(similar) / len(similar) * reward / mentions[i].sum()
    s_diff = np.zeros(len(passages))
    if start.any():
        start[len(names) :] = rho * np.maximum(0, of_passages)
        adjacency = _adjacency(passages, names, mentions)
        degree = adjacency.sum(axis=0)
        walk = adjacency * np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
        pi = np.linalg.solve(np.eye(len(start)) - (1 - gamma) * walk, gamma * start / start.sum())
        s_diff = pi[len(names) :]
    return Naive(s_diff, epsilon * _norm(s_diff) + (1 - epsilon) * _norm(of_passages))


def _adjacency(passages: Sequence[Passage], names: Sequence[str], mentions: Float64s) -> Float64s:
    """Equation (2.1) with weight 2 for facts and 1 for mentions."""
    size = len(names) + len(passages)
    adjacency = np.zeros((size, size))
    adjacency[: len(names), len(names) :] = mentions
    adjacency[len(names) :, : len(names)] = mentions.T
    for passage in passages:
        for head, _, tail in set(passage.extraction.triples):
            u, v = names.index(head), names.index(tail)
            if u != v:
                adjacency[u, v] += 2
                adjacency[v, u] += 2
    return adjacency


def _cosines(embedder: Embedder, texts: Sequence[str], q: Float64s) -> Float64s:
    return np.round(embedder.embed(texts).astype(np.float64) @ q, 12)


def _norm(x: Float64s) -> Float64s:
    return (x - x.min()) / (x.max() - x.min() + 1e-12) if len(x) else x
