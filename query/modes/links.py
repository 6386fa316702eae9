"""Leaps of `fused` from a passage that was found to those that share a rare name with it (methods/fused.md, step 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from index.snapshot import Snapshot

from .base import Float64s, Int64s, best_first, passage_keys

Score = Callable[[Int64s], Float64s]
"""What passages (n,) score before any leap (n,)."""


class Leap(NamedTuple):
    """What a passage got from another: over which name, because of which of its sentences."""

    source: int
    name: int
    sentence: int
    """The sentence of the source, by number, that has the name and is nearest to the question."""
    gain: float


@dataclass(frozen=True, slots=True)
class Linking:
    """How far one leaps. Scores are those of the mixture: cosines as they are."""

    strength: float = 1.2
    power: float = 1.5
    """Of a name's specificity."""
    mention: float = 0.7
    """Share for a passage that has the name and is not about it."""
    behind: float = 0.1
    """A linked passage stays so far below its source."""
    back: float = 0.2
    """Share of a gain that its source gets."""
    warmth: float = 0.15
    """A source this far below the best is trusted a factor e less."""
    least_trust: float = 0.02
    expansions: int = 8
    common: int = 300
    """A name in more passages leads only to those that are scored already."""

    def leap(
        self, snapshot: Snapshot, question: Float64s, asked: frozenset[int], found: Int64s, score: Score
    ) -> tuple[Int64s, Float64s, dict[int, Leap]]:
        """Passages (n,) and their final scores (n,): the `found` (m,) and all that they lead to; and for each passage
        that gained, its best leap. Names that are `asked` lead nowhere.
        """
        held = _Held(snapshot, score)
        held.take(found)
        for _ in range(self.expansions):
            if (source := held.next()) is None:
                break
            trust = math.exp((held.total[source] - held.total.max()) / self.warmth)
            if trust < self.least_trust:
                break
            self._expand(held, source, trust, question, asked)
        numbers = np.flatnonzero(held.known)
        return numbers, held.total[numbers], held.leaps

    def _expand(self, held: _Held, source: int, trust: float, question: Float64s, asked: frozenset[int]) -> None:
        snapshot = held.snapshot
        links = []
        for name, (nearness, sentence) in _names_of(snapshot, source, question).items():
            having = snapshot.spoken.passages_with(name)
            if name in asked or len(having) < 2:
                continue
            rare = _specificity(len(having), snapshot.manifest.counts.passages)
            factor = self.strength * trust * nearness * rare**self.power
            if len(having) > self.common:
                having = having[held.known[having]]
            links.append((name, sentence, factor, having[having != source]))
        # All at once: each look at vectors has a price of its own.
        held.take(np.unique(np.concatenate([np.empty(0, np.int64), *(others for *_, others in links)])))
        ceiling = held.total[source] - self.behind
        for name, sentence, factor, others in links:
            gains = np.where(snapshot.spoken.about[others] == name, factor, factor * self.mention)
            gains = np.clip(np.minimum(gains, ceiling - held.base[others]), 0.0, None)
            held.gain(others, gains, source, name, sentence)
            held.back[source] = max(held.back[source], self.back * gains.max(initial=0.0))
        held.update()


class _Held:
    """Scores by passage number while leaps are made."""

    def __init__(self, snapshot: Snapshot, score: Score) -> None:
        self.snapshot = snapshot
        self._score = score
        n = len(snapshot.lengths)
        self.known = np.zeros(n, np.bool_)
        self.base = np.full(n, -np.inf)
        self.gains, self.back = np.zeros(n), np.zeros(n)
        self.leaps: dict[int, Leap] = {}
        self._open = np.zeros(n, np.bool_)
        """Known, and not a source yet."""
        self.total = self.base

    def update(self) -> None:
        self.total = self.base + self.gains + self.back

    def take(self, passages: Int64s) -> None:
        """Let passages take part that do not yet."""
        new = passages[~self.known[passages]]
        if len(new):
            self.base[new] = self._score(new)
            self.known[new] = self._open[new] = True
            self.update()

    def next(self) -> int | None:
        """The best passage that was no source yet: by score, then base, then key."""
        left = np.flatnonzero(self._open)
        if not len(left):
            return None
        # Rounding must not part those that count as equal.
        near = left[self.total[left] >= self.total[left].max() - 1e-9]
        best = int(near[best_first(passage_keys(self.snapshot, near), self.total[near], self.base[near])[0]])
        self._open[best] = False
        return best

    def gain(self, passages: Int64s, gains: Float64s, source: int, name: int, sentence: int) -> None:
        more = gains > self.gains[passages]
        self.gains[passages[more]] = gains[more]
        for passage, gain in zip(passages[more].tolist(), gains[more].tolist(), strict=True):
            self.leaps[passage] = Leap(source, name, sentence, gain)


def specificity(snapshot: Snapshot, name: int) -> float:
    """1 - ln df / ln N for a name that df of N passages have: 1 for a single one, 0 for all."""
    return _specificity(len(snapshot.spoken.passages_with(name)), snapshot.manifest.counts.passages)


def _specificity(df: int, n: int) -> float:
    return max(0.0, 1 - math.log(df) / math.log(n)) if n > 1 and df else 1.0


def _names_of(snapshot: Snapshot, passage: int, question: Float64s) -> dict[int, tuple[float, int]]:
    """Names that a passage has -> cosine of the sentence nearest to the question that has it, and that sentence.

    What a passage is about is in all of its sentences.
    """
    spoken = snapshot.spoken
    sentences, _ = spoken.sentences(passage)
    nearness = spoken.vectors.scores(sentences, question)
    found: dict[int, tuple[float, int]] = {}
    about = int(spoken.about[passage])
    for sentence, near in zip(sentences.tolist(), nearness.tolist(), strict=True):
        for name in {*spoken.names(sentence), *([about] if about >= 0 else [])}:
            if name not in found or near > found[name][0]:
                found[name] = near, sentence
    return found
