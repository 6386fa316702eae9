"""`hybrid` joins the two rankings by rank and by nothing else."""

from __future__ import annotations

import pytest

from index.types import Question
from query.modes.bm25 import BM25Mode
from query.modes.dense import DenseMode
from query.modes.hybrid import HybridMode
from tests.support_index import SmallIndex, a_passage

TEXTS = ["a lamp on the pier", "the pier at night", "salt and rope", "rope ladders and lamps", "night watch", "ropes"]


@pytest.mark.parametrize("depth", [2, 100])
def test_scores_are_sums_of_reciprocal_ranks(tmp_path_factory: pytest.TempPathFactory, depth: int) -> None:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        snapshot = index.change([a_passage(f"d{i}", text) for i, text in enumerate(TEXTS)])
        vector = index.embedder.embed(["a lamp at night"])[0]
        question = Question("a lamp at night", vector, vector)
        expected: dict[int, float] = {}
        for mode in (DenseMode(), BM25Mode()):
            for rank, (passage, _) in enumerate(mode.rank(snapshot, question, depth).found, start=1):
                expected[passage] = expected.get(passage, 0) + 1 / (60 + rank)
        ranking = HybridMode(depth=depth).rank(snapshot, question, 200)
        assert dict(ranking.found) == pytest.approx(expected)
        scores = [score for _, score in ranking.found]
        assert scores == sorted(scores, reverse=True)
        assert HybridMode(depth=depth).rank(snapshot, question, 2).found == ranking.found[:2]
