"""`bm25`: passages that hold the question's words, scored from the exact sums of the index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from index.attributes import Mask
from index.keys import term_key
from index.snapshot import Snapshot
from index.text import terms
from index.types import Question, Role

from .base import Float64s, Ranking, leading


@dataclass(frozen=True, slots=True)
class MatchedTerm:
    """One word of the question and all that it adds."""

    term: str
    df: int
    """Living passages that hold it."""
    idf: float
    passages: NDArray[np.int32]
    """Their numbers, (df,), ascending."""
    weights: Float64s
    """What the term adds to the score of each, (df,)."""

    def weight(self, passage: int) -> float:
        """What the term adds to one passage, 0 where it does not occur."""
        at = int(np.searchsorted(self.passages, passage))
        return float(self.weights[at]) if at < self.df and self.passages[at] == passage else 0.0


@dataclass(frozen=True, slots=True)
class BM25Trace:
    """The words that occur in the index, in alphabetical order."""

    terms: tuple[MatchedTerm, ...]


@dataclass(frozen=True, slots=True)
class BM25Mode:
    """Robertson and Zaragoza 2009 (eq. 3.15) in the form of Lucene's BM25Similarity:

    score(q, p) = Σ_t qtf(t) · ln(1 + (N − df + ½)/(df + ½)) · tf / (tf + k1·(1 − b + b·|p|/mean |p|))

    This idf is never negative. N, df and lengths are those of living passages: deletes leave no trace in them.
    """

    roles: ClassVar[tuple[Role, ...]] = ()

    k1: float = 1.5
    b: float = 0.75

    def rank(self, snapshot: Snapshot, question: Question, k: int, eligible: Mask | None = None) -> Ranking[BM25Trace]:
        """See Mode; only passages that hold at least one of the words are found."""
        matched = tuple(self.matched(snapshot, question.text))
        if not matched:
            return Ranking((), BM25Trace(()))
        numbers, place = np.unique(np.concatenate([term.passages for term in matched]), return_inverse=True)
        # bincount adds in the order given, which is that of the words: the same sum under any numbering.
        scores: Float64s = np.bincount(place, np.concatenate([term.weights for term in matched])).astype(np.float64)
        if eligible is not None:
            numbers, scores = numbers[eligible[numbers]], scores[eligible[numbers]]
        return Ranking(leading(snapshot, numbers, scores, k), BM25Trace(matched))

    def matched(self, snapshot: Snapshot, text: str) -> Iterator[MatchedTerm]:
        """The words of a text that occur, in alphabetical order."""
        n = snapshot.manifest.counts.passages
        mean = int(snapshot.lengths.sum()) / max(1, n)
        for term, times in sorted(terms(text).items()):
            number = snapshot.kinds.terms.find(term_key(term))
            # Terms that came after this snapshot have numbers too: they are not in it.
            if number is None or number >= snapshot.postings.n_rows:
                continue
            passages, frequency = snapshot.postings.row(number)
            if not len(passages):
                continue
            df = len(passages)
            idf = float(np.log1p((n - df + 0.5) / (df + 0.5)))
            saturation = frequency + self.k1 * (1 - self.b + self.b * snapshot.lengths[passages] / mean)
            yield MatchedTerm(term, df, idf, passages, times * idf * frequency / saturation)
