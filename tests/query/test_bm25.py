"""`bm25` against the formula over the living texts alone, after histories of edits and deletes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.text import terms
from index.types import Question
from query.modes.bm25 import BM25Mode
from tests.support_index import SmallIndex, a_passage

NOTHING = np.zeros(64)


def naive(texts: Mapping[str, str], question: str, k1: float = 1.5, b: float = 0.75) -> dict[str, float]:
    """Score of every document that holds a word of the question."""
    bags = {id: terms(text) for id, text in texts.items()}
    mean = sum(sum(bag.values()) for bag in bags.values()) / max(1, len(bags))
    scores: dict[str, float] = {}
    for term, times in terms(question).items():
        df = sum(term in bag for bag in bags.values())
        idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
        for id, bag in bags.items():
            if tf := bag.get(term, 0):
                length = sum(bag.values()) / mean
                scores[id] = scores.get(id, 0) + times * idf * tf / (tf + k1 * (1 - b + b * length))
    return scores


WORD = st.sampled_from(["tide", "harbour", "lamp", "salt", "rope", "the"])
WORDS = st.lists(WORD, min_size=1, max_size=9).map(" ".join)
BATCH = st.dictionaries(st.sampled_from(["d0", "d1", "d2", "d3", "d4"]), st.none() | WORDS, min_size=1, max_size=5)


@settings(max_examples=10)
@given(history=st.lists(BATCH, min_size=1, max_size=4), question=WORDS)
def test_scores_are_those_of_the_living_texts(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[str, str | None]], question: str
) -> None:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        for batch in history:
            put = [a_passage(id, text) for id, text in batch.items() if text is not None]
            snapshot = index.change(put, [id for id, text in batch.items() if text is None and id in index.passages])
        ranking = BM25Mode().rank(snapshot, Question(question, NOTHING, NOTHING), 200)
        rows = snapshot.passage_rows(passage for passage, _ in ranking.found)
        found = {rows[passage].document: score for passage, score in ranking.found}
        assert found == pytest.approx(naive({id: row.text for id, row in index.passages.items()}, question))
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_a_snapshot_ignores_words_that_came_after_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        before = index.change([a_passage("d1", "a lamp in the harbour")])
        index.change([a_passage("d2", "a zeppelin over the harbour")])
        question = Question("harbour zeppelin", NOTHING, NOTHING)
        ranking = BM25Mode().rank(before, question, 10)
        assert len(ranking.found) == 1
        assert [term.term for term in ranking.trace.terms] == ["harbour"]
        assert len(BM25Mode().rank(index.snapshot, question, 10).found) == 2


def test_the_first_k_are_those_of_the_whole_ranking(tmp_path_factory: pytest.TempPathFactory) -> None:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        texts = [f"lamp {'rope ' * (i % 3)}" for i in range(12)]
        snapshot = index.change([a_passage(f"d{i}", text) for i, text in enumerate(texts)])
        question = Question("lamp and rope", NOTHING, NOTHING)
        whole = BM25Mode().rank(snapshot, question, 200).found
        assert len(whole) == 12
        for k in (1, 3, 5, 11):
            assert BM25Mode().rank(snapshot, question, k).found == whole[:k]
