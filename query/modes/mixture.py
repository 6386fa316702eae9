"""The calibrated mixture of `fused`: cosines as they are, words as a share of the best, and the titles named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from index.attributes import Mask
from index.snapshot import Snapshot
from index.text import terms

from .base import Float64s, Int64s
from .bm25 import BM25Mode
from .dense import nearest_passages

WORDS = BM25Mode()


class Mixture:
    """Base scores of passages for one question, worked out where they are asked for:

    half the passage's cosine, half its best sentence's, and shares of the best word score and of the titles named.
    """

    def __init__(
        self, snapshot: Snapshot, vector: Float64s, words: Float64s, titles: Mapping[int, float], title_weight: float
    ) -> None:
        """`words` (passages,) is what words add to each passage number; `titles` are (name -> 0 to 1)."""
        self._snapshot = snapshot
        self.vector = vector
        self.words = words
        self.titles = np.zeros(len(snapshot.lengths))
        for title, sure in titles.items():
            about = snapshot.spoken.passages_about(title)
            self.titles[about] = title_weight * sure
        self._known = np.zeros(len(snapshot.lengths), np.bool_)
        self._scores = np.zeros(len(snapshot.lengths))
        self.cosines = np.zeros(len(snapshot.lengths))
        self.sentences = np.zeros(len(snapshot.lengths))

    def of(self, passages: Int64s) -> Float64s:
        """Base scores (n,) of living passages (n,)."""
        new = np.unique(passages[~self._known[passages]])
        if len(new):
            self.cosines[new] = self._snapshot.passages.scores(new, self.vector)
            self.sentences[new] = self._snapshot.spoken.best(new, self.vector)
            mixed = 0.5 * self.cosines[new] + 0.5 * self.sentences[new] + self.words[new] + self.titles[new]
            self._scores[new] = mixed
            self._known[new] = True
        scores: Float64s = self._scores[passages]
        return scores

    def candidates(self, k: int, eligible: Mask | None) -> Int64s:
        """Passages (n,) that may lead: the k nearest, the k with the best words, and all with a title that is named.

        Those that no answer may hold may lead to others; of the eligible there are as many without them.
        """
        found = [np.flatnonzero(self.titles)]
        for among in (None,) if eligible is None else (None, eligible):
            nearest, _ = nearest_passages(self._snapshot, self.vector, k, among)
            found += [nearest, largest(self.words if among is None else self.words * among, k)]
        return np.unique(np.concatenate(found))


@dataclass(frozen=True, slots=True)
class Blend:
    """Scores of passages: the anchor's for the whole question, all others' for its rest, each in its context."""

    anchor: int
    named: Mixture
    asking: Mixture
    neighbours: Int64s
    """The turns before and after each passage number (passages, 2), -1 for none."""
    context_weight: float

    def of(self, passages: Int64s) -> Float64s:
        """Scores (n,) of living passages (n,)."""
        base = self._base(passages)
        return base + self._context(passages, base)

    def context(self, passages: Int64s) -> Float64s:
        """What the better of the two turns beside each passage adds to it (n,)."""
        return self._context(passages, self._base(passages))

    def _base(self, passages: Int64s) -> Float64s:
        scores = self.asking.of(passages)
        scores[passages == self.anchor] = self.named.of(np.array([self.anchor]))
        return scores

    def _context(self, passages: Int64s, base: Float64s) -> Float64s:
        beside = self.neighbours[passages]
        rows, sides = np.nonzero(beside >= 0)
        best = np.full(len(passages), -np.inf)
        if len(rows):
            np.maximum.at(best, rows, self._base(beside[rows, sides]))
        return self.context_weight * np.maximum(0.0, best - base)


class WordShares:
    """BM25 of passages as a share of the best, for a question and for parts of it: the words are looked up once."""

    def __init__(self, snapshot: Snapshot, question: str) -> None:
        self._n = len(snapshot.lengths)
        self._times = terms(question)
        self._matched = list(WORDS.matched(snapshot, question))

    def of(self, part: str) -> Float64s:
        """Shares of every passage number (passages,) for the question, or for a part of it in whole words."""
        scores = np.zeros(self._n)
        times = terms(part)
        for term in self._matched:
            if term.term in times:
                scores[term.passages] += term.weights * (times[term.term] / self._times[term.term])
        best = scores.max(initial=0.0)
        return scores / best if best > 0 else scores


def largest(scores: Float64s, k: int) -> Int64s:
    """Numbers (n,) of the k largest scores above zero, and of all that are as large as the k-th."""
    if np.count_nonzero(scores) > k:
        return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    return np.flatnonzero(scores)
