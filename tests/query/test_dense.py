"""`dense` against a plain product of matrices over what is left after edits and deletes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.types import Question
from query.modes.dense import DenseMode
from tests.support_index import SmallIndex, a_passage

WORD = st.sampled_from(["tide", "harbour", "lamp", "salt", "rope"])
TEXT = st.lists(WORD, min_size=1, max_size=5).map(" ".join)
TEXTS = st.lists(TEXT, min_size=1, max_size=8)


@settings(max_examples=8)
@given(texts=TEXTS, gone=st.sets(st.integers(0, 7)), question=TEXT, k=st.integers(1, 9))
def test_it_finds_the_nearest_of_what_is_left_and_ties_go_by_key(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], gone: set[int], question: str, k: int
) -> None:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        index.change([a_passage(f"d{i}", text) for i, text in enumerate(texts)])
        snapshot = index.change(gone=[f"d{i}" for i in range(len(texts)) if i in gone])
        vector = index.embedder.embed([question])[0]
        left = list(index.passages.values())
        cosines = index.embedder.embed([row.text for row in left]).astype(float) @ vector.astype(float)
        expected = sorted((-round(float(cosine), 12), row.key) for cosine, row in zip(cosines, left, strict=True))[:k]
        found = DenseMode().rank(snapshot, Question(question, vector, vector), k).found
        keys = snapshot.kinds.passages.keys
        assert [keys[passage] for passage, _ in found] == [key for _, key in expected]
        assert [score for _, score in found] == pytest.approx([-score for score, _ in expected])


def test_a_question_without_content_finds_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        snapshot = index.change([a_passage("d1", "a lamp")])
        assert DenseMode().rank(snapshot, Question("?!", np.zeros(64), np.zeros(64)), 5).found == ()
