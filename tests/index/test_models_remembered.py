"""Remembered questions: asked once in whatever role, few at a time, and failures are not remembered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from index.errors import ModelUnavailable
from index.models.hashing import HashingEmbedder
from index.models.remembered import Remembering
from index.types import Role


class Counting(HashingEmbedder):
    """Notes what it is asked; fails while `away`."""

    def __init__(self) -> None:
        super().__init__(8)
        self.asked: list[str] = []
        self.away = False

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        self.asked += texts
        if self.away:
            raise ModelUnavailable("no answer")
        return super().embed(texts, role)


def test_a_question_is_asked_once_for_all_roles_until_others_push_it_out() -> None:
    counting = Counting()
    embedder = Remembering(counting, capacity=2)
    embedder.embed(["one"], "fact-question")
    embedder.embed(["one"], "passage-question")
    assert counting.asked == ["one"]
    for text in ("two", "three", "two", "one"):
        embedder.embed([text])
    assert counting.asked == ["one", "two", "three", "one"]


def test_what_is_remembered_cannot_be_changed_from_outside() -> None:
    embedder = Remembering(Counting())
    embedder.embed(["one"])[0] = 7
    assert np.array_equal(embedder.embed(["one"]), HashingEmbedder(8).embed(["one"]))


def test_a_failure_is_not_remembered() -> None:
    counting = Counting()
    embedder = Remembering(counting)
    counting.away = True
    with pytest.raises(ModelUnavailable):
        embedder.embed(["one"])
    counting.away = False
    assert embedder.embed(["one"]).any()
