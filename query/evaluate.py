"""How good and how fast a mode answers questions whose gold passages are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean, quantiles
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.models.base import Embedder
from index.snapshot import Snapshot
from index.types import Key, Question

from .modes.base import Mode

RECALL_AT = (2, 5, 10)
ALL_AT = 5
KEPT = 20
"""Names that are kept of every ranking."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a set: `gold` are the names (of passages, or of documents) that hold its answer."""

    id: str
    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ranked:
    """What a mode found: distinct names, best first, and the milliseconds of ranking (without the encoder)."""

    id: str
    top: tuple[str, ...]
    milliseconds: float


def embedded(questions: Sequence[Asked], embedder: Embedder) -> list[Question]:
    """The questions with their vectors in both roles; the vector of a part is asked for once."""
    texts = [question.text for question in questions]

    @cache
    def encode(part: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = embedder.embed([part], "passage-question")[0]
        return vector

    to_facts, to_passages = embedder.embed(texts, "fact-question"), embedder.embed(texts, "passage-question")
    return [Question(*parts, encode) for parts in zip(texts, to_facts, to_passages, strict=True)]


def ask(
    snapshot: Snapshot,
    mode: Mode,
    questions: Sequence[Asked],
    vectors: Sequence[Question],
    names: Mapping[Key, str],
    progress: Callable[[], None] = lambda: None,
) -> list[Ranked]:
    """Rank every question over the whole snapshot; `names` says what each passage counts as, several may share one."""
    # So many passages that twenty distinct names are among them even where documents have several.
    k = KEPT if len(set(names.values())) == len(names) else 10 * KEPT
    results = []
    for question, vector in zip(questions, vectors, strict=True):
        encoder = _Timed(vector)
        started = time.perf_counter()
        ranking = mode.rank(snapshot, vector._replace(encode=encoder), k)
        elapsed = 1000 * (time.perf_counter() - started - encoder.seconds)
        found = (names[snapshot.kinds.passages.keys[scored.passage]] for scored in ranking.found)
        results.append(Ranked(question.id, tuple(dict.fromkeys(found))[:KEPT], elapsed))
        progress()
    return results


class _Timed:
    """An encoder of parts of a question that knows how long it took."""

    def __init__(self, question: Question) -> None:
        assert question.encode is not None, "questions of `embedded` can be asked in part"
        self._encode = question.encode
        self.seconds = 0.0

    def __call__(self, part: str) -> Any:
        started = time.perf_counter()
        vector = self._encode(part)
        self.seconds += time.perf_counter() - started
        return vector


def scores(questions: Sequence[Asked], rankings: Sequence[Ranked]) -> dict[str, float]:
    """Means in percent over the questions that have gold: recall@k = |gold in top k| / |gold|; all@5 = share with all
    gold in the top 5.
    """
    pairs = [(question.gold, ranked.top) for question, ranked in zip(questions, rankings, strict=True) if question.gold]
    if not pairs:
        return {}
    figures = {
        f"recall@{k}": 100 * mean(len(gold & set(top[:k])) / len(gold) for gold, top in pairs) for k in RECALL_AT
    }
    figures[f"all@{ALL_AT}"] = 100 * mean(gold <= set(top[:ALL_AT]) for gold, top in pairs)
    return {name: round(figure, 2) for name, figure in figures.items()}


def latencies(rankings: Sequence[Ranked]) -> dict[str, float]:
    """Median, 95th percentile and largest milliseconds of ranking."""
    times = sorted(ranked.milliseconds for ranked in rankings)
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 19
    return {"p50_ms": round(cuts[9], 2), "p95_ms": round(cuts[18], 2), "max_ms": round(times[-1], 2)}
