"""Tests of the understanding: no text is embedded or read twice, and what is kept survives torn files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lance
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from index import understanding as understanding_module
from index.errors import ModelUnavailable
from index.models.hashing import HashingEmbedder
from index.types import Extraction, Role, Triple
from index.understanding import TABLE, Understanding

D = 8


class Counting(HashingEmbedder):
    """Notes what it is asked to embed, call by call."""

    remote = True

    def __init__(self) -> None:
        super().__init__(D)
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        self.calls.append(list(texts))
        return super().embed(texts, role)


class Reader:
    """Notes what it is asked to read; a text that begins with "bad" is read badly."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, str]]] = []

    def __call__(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        self.calls.append(list(passages))
        return [said_of(title, text) for title, text in passages]


def said_of(title: str, text: str) -> Extraction:
    return Extraction(f"{title}: {text}", (text,), (Triple(title, "says", text),), degraded=text.startswith("bad"))


batches = st.lists(st.lists(st.sampled_from(["one", "two", "three", "zwölf", "", "'\0"]), max_size=6), max_size=4)


@given(batches)
def test_every_text_is_embedded_once(tmp_path_factory: pytest.TempPathFactory, asked: list[list[str]]) -> None:
    known, embedder = Understanding(tmp_path_factory.mktemp("known"), D), Counting()
    for texts in asked:
        vectors = known.vectors(texts, embedder)
        assert vectors.shape == (len(texts), D) and vectors.dtype == np.float32
        assert np.array_equal(vectors, HashingEmbedder(D).embed(texts))
    bought = [text for call in embedder.calls for text in call]
    assert sorted(bought) == sorted({text for texts in asked for text in texts})
    assert [] not in embedder.calls, "nothing new is no call"


def test_what_was_bought_outlives_the_process_and_belongs_to_its_model(tmp_path: Path) -> None:
    embedder, read = Counting(), Reader()
    first = Understanding(tmp_path, D)
    first.vectors(["one"], embedder)
    first.extractions([("T", "one")], "reader-1", read)
    again = Understanding(tmp_path, D)
    assert np.array_equal(again.vectors(["one"], embedder), HashingEmbedder(D).embed(["one"]))
    assert again.extractions([("T", "one")], "reader-1", read) == [said_of("T", "one")]
    assert (embedder.calls, read.calls) == ([["one"]], [[("T", "one")]])

    other = Counting()
    other.fingerprint = "another model"
    again.vectors(["one"], other)
    again.extractions([("T", "one"), ("U", "one")], "reader-2", read)
    assert other.calls == [["one"]]
    assert read.calls[1:] == [[("T", "one"), ("U", "one")]], "the title and the extractor are part of what is read"


def test_passages_are_read_once_and_come_back_in_order(tmp_path: Path) -> None:
    known, read = Understanding(tmp_path, D), Reader()
    passages = [("T", "one"), ("", "two"), ("T", "one"), ("one", "T")]
    assert known.extractions(passages, "reader", read) == [said_of(*passage) for passage in passages]
    assert known.extractions(passages[::-1], "reader", read) == [said_of(*passage) for passage in passages[::-1]]
    assert read.calls == [[("T", "one"), ("", "two"), ("one", "T")]]


def test_a_degraded_reading_is_used_and_not_kept(tmp_path: Path) -> None:
    known, read = Understanding(tmp_path, D), Reader()
    for _ in range(2):
        assert known.extractions([("", "bad one"), ("", "good")], "reader", read)[0].degraded
    assert read.calls == [[("", "bad one"), ("", "good")], [("", "bad one")]]


def test_a_model_that_fails_leaves_what_is_known(tmp_path: Path) -> None:
    known, embedder = Understanding(tmp_path, D), Counting()
    known.vectors(["one"], embedder)

    def unavailable(passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        raise ModelUnavailable("no answer")

    with pytest.raises(ModelUnavailable):
        known.extractions([("", "one")], "reader", unavailable)
    known.vectors(["one"], embedder)
    assert len(embedder.calls) == 1
    assert known.extractions([("", "one")], "reader", Reader()) == [said_of("", "one")]


def test_long_lists_are_looked_up_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(understanding_module, "KEYS_PER_READ", 3)
    known, embedder = Understanding(tmp_path, D), Counting()
    texts = [f"text {number}" for number in range(10)]
    known.vectors(texts, embedder)
    assert np.array_equal(known.vectors(texts[::-1], embedder), HashingEmbedder(D).embed(texts[::-1]))
    assert len(embedder.calls) == 1


def test_duplicates_of_two_workers_are_harmless(tmp_path: Path) -> None:
    workers = Understanding(tmp_path, D), Understanding(tmp_path, D)
    fresh = workers[0]
    workers[0].vectors(["one", "two"], Counting())

    class Late(Counting):
        def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
            fresh.vectors(["three"], Counting())
            return super().embed(texts, role)

    workers[1].vectors(["two", "three"], Late())
    assert np.array_equal(workers[0].vectors(["three"], Counting()), HashingEmbedder(D).embed(["three"]))


@pytest.mark.parametrize("torn", [1, 9])
def test_torn_newest_versions_cost_only_what_was_in_them(tmp_path: Path, torn: int) -> None:
    known, embedder = Understanding(tmp_path, D), Counting()
    for text in ("one", "two", "three"):
        known.vectors([text], embedder)
    for path in sorted((tmp_path / f"{TABLE}.lance" / "_versions").glob("*.manifest"))[:torn]:
        path.write_bytes(b"")
    again, embedder = Understanding(tmp_path, D), Counting()
    again.vectors(["one", "two", "three"], embedder)
    assert embedder.calls == [["three"] if torn == 1 else ["one", "two", "three"]]
    rows = lance.dataset(str(tmp_path / f"{TABLE}.lance")).count_rows()
    assert rows == 3
