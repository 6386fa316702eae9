"""What every mode of reading offers: a question in, passages in order out, and a trace of how they were found.

A filter decides what may be answered, and nothing else: the index still knows all of its passages, so word statistics,
walks and links are those of the whole snapshot, and go through passages that no answer may hold. (`as_of` is what
asks an index that does not know them.) It reaches a mode as `eligible`, a mask by passage number, and `ranked` is the
only caller: it drops what the mask excludes and asks for more passages until k are left or the mode has no more. So

- a mode that would rank every passage may ignore `eligible` and is right, at the price of ranking deeper;
- a mode that looks at the best candidates only, of whatever kind, must choose the candidates among the eligible
  (`nearest_passages` and `VectorTable.search` take the mask), or it would find too few;
- None means that all are eligible, and is the fast way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from index.attributes import Mask
from index.cosine import DECIMALS
from index.keys import halves
from index.snapshot import Snapshot
from index.types import Key, Question, Role

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
Trace = TypeVar("Trace", covariant=True)

DEEPER = 8
"""So many times as many passages are asked of a mode that did not look at the mask and found too few."""


class Scored(NamedTuple):
    """A passage, by its number in the snapshot, and what it scored; larger is better, only within one ranking."""

    passage: int
    score: float


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Trace]):
    """The answer of a mode: passages best first, and what the mode saw on its way."""

    found: tuple[Scored, ...]
    trace: Trace
    notes: Mapping[str, str] = field(default_factory=dict)
    """What the asker should know, such as {"fallback": "dense"}."""


class Mode(Protocol):
    """A way of reading: a frozen value of its parameters, so that any number of threads may use one."""

    roles: ClassVar[tuple[Role, ...]]
    """The vectors of the question that it reads; the others may be zero."""

    def rank(self, snapshot: Snapshot, question: Question, k: int, eligible: Mask | None = None) -> Ranking[object]:
        """At most `k` living passages, best first; a function of snapshot, question and mask, of nothing else.

        Equal scores (12 decimals) are in order of passage key. A question that has nothing to compare finds nothing.
        """
        ...


def ranked(mode: Mode, snapshot: Snapshot, question: Question, k: int, eligible: Mask | None) -> Ranking[object]:
    """The first `k` passages of a mode that are eligible; see the module. `eligible` is as long as snapshot.lengths."""
    wanted = k
    while True:
        ranking = mode.rank(snapshot, question, wanted, eligible)
        if eligible is None:
            return ranking
        found = tuple(scored for scored in ranking.found if eligible[scored.passage])
        if len(found) >= k or len(ranking.found) < wanted:
            return replace(ranking, found=found[:k])
        wanted *= DEEPER


def best_first(keys: Sequence[Key], *scores: Float64s) -> Int64s:
    """Positions (n,) by the first score, largest first; equal ones by the next, in the end by key, smallest first.

    Scores (n,) are compared after rounding to 12 decimals: what a sum of floats loses must not decide an order.
    """
    high, low = halves(keys)
    return np.lexsort((low, high, *(-np.round(score, DECIMALS) for score in reversed(scores))))


def passage_keys(snapshot: Snapshot, numbers: Int64s) -> list[Key]:
    """Keys (n,) of passage numbers (n,)."""
    return [snapshot.kinds.passages.keys[number] for number in numbers.tolist()]


def leading(snapshot: Snapshot, numbers: Int64s, scores: Float64s, k: int) -> tuple[Scored, ...]:
    """The k best of passages (n,) with their scores (n,), best first; equal ones in order of key."""
    if len(scores) > k:
        # A hair below the k-th, so that rounding cannot part those that count as equal.
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - 1e-9
        numbers, scores = numbers[kept], scores[kept]
    order = best_first(passage_keys(snapshot, numbers), scores)[:k]
    return tuple(map(Scored, numbers[order].tolist(), scores[order].tolist()))
