"""What every mode of reading offers: a question in, passages in order out, and a trace of how they were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from index.keys import halves
from index.snapshot import Snapshot
from index.types import Key, Question, Role
from index.vectors import DECIMALS

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
Trace = TypeVar("Trace", covariant=True)


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

    def rank(self, snapshot: Snapshot, question: Question, k: int) -> Ranking[object]:
        """At most `k` living passages, best first; a function of snapshot and question, of nothing else.

        Equal scores (12 decimals) are in order of passage key. A question that has nothing to compare finds nothing.
        """
        ...


def best_first(keys: Sequence[Key], *scores: Float64s) -> Int64s:
    """Positions (n,) by the first score, largest first; equal ones by the next, in the end by key, smallest first.

    Scores (n,) are compared after rounding to 12 decimals: what a sum of floats loses must not decide an order.
    """
    high, low = halves(keys)
    return np.lexsort((low, high, *(-np.round(score, DECIMALS) for score in reversed(scores))))


def passage_keys(snapshot: Snapshot, numbers: Int64s) -> list[Key]:
    """Keys (n,) of passage numbers (n,)."""
    return [snapshot.kinds.passages.keys[number] for number in numbers.tolist()]
