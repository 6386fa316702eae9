"""CogniRank: passages by where the walk came to rest, with a small share of plain similarity, and rankings merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from index.attributes import Mask
from index.cosine import DECIMALS
from index.snapshot import Snapshot

from .base import Float64s, Int64s, Scored, best_first, passage_keys
from .dense import nearest_passages
from .walk import Spread


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates of one question in the order of their score; every array is (c,)."""

    passages: Int64s
    s_diff: Float64s
    """Mass that the walk left on each."""
    similarity: Float64s
    """σ: cosine with the question."""
    norm_diff: Float64s
    norm_similarity: Float64s
    score: Float64s

    def scored(self) -> list[Scored]:
        return list(map(Scored, self.passages.tolist(), self.score.tolist()))

    def ties(self) -> list[list[int]]:
        """Runs of passages, longer than one, whose score and similarity are equal (12 decimals)."""
        level = np.round(np.stack([self.score, self.similarity]), DECIMALS)
        cuts = np.flatnonzero((level[:, 1:] != level[:, :-1]).any(axis=0)) + 1
        runs = [self.passages[a:b].tolist() for a, b in pairwise([0, *cuts.tolist(), len(self.passages)])]
        return [run for run in runs if len(run) > 1]


class Chosen(NamedTuple):
    """A passage of the merged answer."""

    passage: int
    score: float
    ranking: int
    """Place of the ranking that gave the score."""
    complement: bool
    """Chosen because the passages that are best for one question alone left room."""


def candidates(snapshot: Snapshot, spread: Spread, q: Float64s, k: int, eligible: Mask | None = None) -> Int64s:
    """𝒫_c (c,): the first `k` eligible passages by mass, then cosine with q (d,), then key; those without mass last."""
    mass = np.round(spread.mass, DECIMALS)
    held = (spread.nodes % 2 == 1) & (mass > 0)
    if eligible is not None:
        held[held] = eligible[spread.nodes[held] // 2]
    if np.count_nonzero(held) > k:
        among = mass[held]
        held &= mass >= np.partition(among, len(among) - k)[len(among) - k]
    passages = spread.nodes[held] // 2
    if len(passages) < k:
        nearest, _ = nearest_passages(snapshot, q, k, eligible)
        passages = np.concatenate((passages, np.setdiff1d(nearest, passages)))
    similarity = snapshot.passages.scores(passages, q)
    order = best_first(passage_keys(snapshot, passages), spread.of(2 * passages + 1), similarity)[:k]
    return np.asarray(passages[order], np.int64)


def cogni_rank(
    snapshot: Snapshot, passages: Int64s, spread: Spread, q: Float64s, epsilon: float, delta: float
) -> Ranked:
    """S(p) = ε·Norm(S_diff)(p) + (1−ε)·Norm(σ)(p) over the candidates (c,) (CogitoRAG eq. 17 and 18)."""
    s_diff, similarity = spread.of(2 * passages + 1), snapshot.passages.scores(passages, q)
    norm_diff, norm_similarity = _norm(s_diff, delta), _norm(similarity, delta)
    score = epsilon * norm_diff + (1 - epsilon) * norm_similarity
    order = best_first(passage_keys(snapshot, passages), score, similarity)
    columns = (s_diff, similarity, norm_diff, norm_similarity, score)
    return Ranked(passages[order], *(column[order] for column in columns))


def merge(snapshot: Snapshot, rankings: Sequence[Ranked], k: int) -> list[Chosen]:
    """Join the rankings of m sub-questions: the first ⌊(k−1)/m⌋ of each, then the best of the rest (CogitoRAG § 4.3.1).

    A passage that an earlier sub-question took is skipped and not replaced. One ranking alone gives its first `k`.
    """
    share = k if len(rankings) == 1 else (k - 1) // len(rankings)
    chosen: dict[int, Chosen] = {}
    for place, ranking in enumerate(rankings):
        for passage, score in ranking.scored()[:share]:
            chosen.setdefault(passage, Chosen(passage, score, place, complement=False))
    best: dict[int, Chosen] = {}
    for place, ranking in enumerate(rankings):
        for passage, score in ranking.scored():
            if passage not in chosen and (passage not in best or score > best[passage].score):
                best[passage] = Chosen(passage, score, place, complement=True)
    rest = list(best.values())
    keys = passage_keys(snapshot, np.array([*best], np.int64))
    order = best_first(keys, np.array([candidate.score for candidate in rest]))[: k - len(chosen)]
    return [*chosen.values(), *(rest[at] for at in order.tolist())]


def _norm(x: Float64s, delta: float) -> Float64s:
    low = x.min(initial=np.inf)
    return (x - low) / (x.max(initial=-np.inf) - low + delta) if len(x) else x
