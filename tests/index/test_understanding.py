"""Tests of the understanding: no text is embedded or read twice, and what is kept survives torn files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from index.models.hashing import HashingEmbedder
from index.types import Extraction, Role, Triple
from index.understanding import ANSWERS, TABLE, Understanding

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


def said_of(title: str, text: str) -> Extraction:
    return Extraction(f"{title}: {text}", (text,), (Triple(title, "says", text),))


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
    embedder = Counting()
    first = Understanding(tmp_path, D)
    first.vectors(["one"], embedder)
    again = Understanding(tmp_path, D)
    assert np.array_equal(again.vectors(["one"], embedder), HashingEmbedder(D).embed(["one"]))
    assert embedder.calls == [["one"]]

    other = Counting()
    other.fingerprint = "another model"
    again.vectors(["one"], other)
    assert other.calls == [["one"]]


ONE, TWO = ("T", "one"), ("", "two")


@pytest.mark.parametrize("gathered", [False, True], ids=["in the file", "in the table"])
def test_what_was_said_outlives_the_process_and_belongs_to_its_extractor(tmp_path: Path, gathered: bool) -> None:
    first = Understanding(tmp_path, D)
    assert first.said([ONE, TWO], "reader") == [None, None]
    first.keep(ONE, "reader", said_of(*ONE))
    if gathered:
        first.gather()
    for known in (first, Understanding(tmp_path, D)):
        assert known.said([TWO, ONE, ONE], "reader") == [None, said_of(*ONE), said_of(*ONE)]
        assert known.said([ONE], "other reader") == [None]
        assert known.said([("U", "one")], "reader") == [None], "the title is read too"


def test_many_answers_become_one_piece_of_the_table(tmp_path: Path) -> None:
    known = Understanding(tmp_path, D)
    before = lance.dataset(str(tmp_path / f"{TABLE}.lance")).version
    for number in range(10):
        known.keep(("", str(number)), "reader", said_of("", str(number)))
    known.keep(("", "3"), "reader", said_of("", "3"))
    known.gather()
    known.gather()
    table = lance.dataset(str(tmp_path / f"{TABLE}.lance"))
    assert (table.version, table.count_rows()) == (before + 1, 10)
    assert not (tmp_path / ANSWERS).read_bytes()


def test_an_answer_that_comes_while_others_are_gathered_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Understanding(tmp_path, D)
    known.keep(ONE, "reader", said_of(*ONE))
    add_rows = known._extractions.add

    def late(*rows: Any) -> None:
        known.keep(TWO, "reader", said_of(*TWO))
        add_rows(*rows)

    monkeypatch.setattr(known._extractions, "add", late)
    known.gather()
    assert Understanding(tmp_path, D).said([ONE, TWO], "reader") == [said_of(*ONE), said_of(*TWO)]


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


def test_models_of_other_lengths_keep_their_own_vectors(tmp_path: Path) -> None:
    Understanding(tmp_path, D).vectors(["one"], Counting())
    longer = HashingEmbedder(2 * D)
    assert np.array_equal(Understanding(tmp_path, 2 * D).vectors(["one"], longer), longer.embed(["one"]))
    again = Counting()
    Understanding(tmp_path, D).vectors(["one"], again)
    assert again.calls == []


@pytest.mark.parametrize("torn", [1, 9])
def test_torn_newest_versions_cost_only_what_was_in_them(tmp_path: Path, torn: int) -> None:
    known, embedder = Understanding(tmp_path, D), Counting()
    for text in ("one", "two", "three"):
        known.vectors([text], embedder)
    for path in sorted((tmp_path / f"{TABLE}-{D}.lance" / "_versions").glob("*.manifest"))[:torn]:
        path.write_bytes(b"")
    again, embedder = Understanding(tmp_path, D), Counting()
    again.vectors(["one", "two", "three"], embedder)
    assert embedder.calls == [["three"] if torn == 1 else ["one", "two", "three"]]
    rows = lance.dataset(str(tmp_path / f"{TABLE}-{D}.lance")).count_rows()
    assert rows == 3
