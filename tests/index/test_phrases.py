"""Phrase search finds exactly the passages that hold the words in a row, with and without indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import BadRequest, StoreError
from index.indexes import WORDS, keep_words
from index.keys import term_key
from index.phrases import holders

SCHEMA = pa.schema([("key", pa.binary(16)), ("title", pa.string()), ("text", pa.large_string())])
WORDS_USED = ["the", "of", "New", "new", "York", "Straße", "x_y", "don't", "3.5", "naïve", "東京都", "Ada-Lovelace"]
texts = st.lists(st.sampled_from(WORDS_USED), max_size=8).map(" ".join)


def table(folder: Path, rows: list[tuple[str, str]]) -> Any:
    return lance.write_dataset(arrow(rows, 0), str(folder / "passages.lance"))


def arrow(rows: list[tuple[str, str]], first: int) -> pa.Table:
    keys = [term_key(str(number)) for number in range(first, first + len(rows))]
    columns = {"key": keys, "title": [title for title, _ in rows], "text": [text for _, text in rows]}
    return pa.table(columns, schema=SCHEMA)


def split(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()


def naive(rows: list[tuple[str, str]], phrase: str) -> set[bytes]:
    """No script without blanks: words only."""
    words = split(phrase)

    def holds(text: str) -> bool:
        there = split(text)
        return any(there[at : at + len(words)] == words for at in range(len(there) - len(words) + 1))

    return {term_key(str(number)) for number, row in enumerate(rows) if any(map(holds, row))}


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(texts, texts), min_size=1, max_size=12),
    st.lists(st.tuples(texts, texts), max_size=6),
    st.sets(st.integers(0, 11)),
    st.lists(st.lists(st.sampled_from(WORDS_USED[:-2]), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=3),
)
def test_with_and_without_indexes_it_is_what_a_naive_reading_finds(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    later: list[tuple[str, str]],
    gone: set[int],
    phrases: list[str],
) -> None:
    """Rows that the indexes do not cover yet, and rows that went since, included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("index.indexes.WORDS_ABOVE", 0)
        for indexed in (False, True):
            dataset = table(tmp_path_factory.mktemp("phrases"), rows)
            if indexed:
                assert keep_words(dataset, len(rows)).step == "trained"
            if later:
                dataset = lance.write_dataset(arrow(later, len(rows)), dataset.uri, mode="append")
            for number in gone:
                dataset.delete(f"key = X'{term_key(str(number)).hex()}'")
            away = {term_key(str(number)) for number in gone}
            for phrase in phrases:
                assert set(holders(dataset, phrase)) == naive([*rows, *later], phrase) - away
            if indexed and later:
                keep_words(dataset, dataset.count_rows())
                for phrase in phrases:
                    assert set(holders(dataset, phrase)) == naive([*rows, *later], phrase) - away


@pytest.fixture(params=[False, True], ids=["read through", "indexed"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("index.indexes.WORDS_ABOVE", 0)
    made = table(
        tmp_path,
        [
            ("The Amber Lock", "It was repaired,\nby Mara (Quill). Then\tclosed."),
            ("", "the amber locks of Mara"),
            ("東京都", "彼女は東京都に住む"),
            ("Quill", "Mara"),
        ],
    )
    if request.param:
        keep_words(made, 4)
    return made


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ("amber lock", {0}),
        ("AMBER", {0, 1}),
        ("mara quill", {0}),
        ("by mara quill then closed", {0}),
        ("was by", set()),
        ("lock it", set()),
        ("京都", {2}),
        ("住む", {2}),
        ("quill mara", set()),
        ("mar", set()),
    ],
)
def test_words_in_a_row(dataset: Any, phrase: str, found: set[int]) -> None:
    """Case, line ends and punctuation do not matter; the end of a title is the end of a row of words."""
    assert set(holders(dataset, phrase)) == {term_key(str(number)) for number in found}


def test_a_phrase_without_a_word_is_refused(dataset: Any) -> None:
    for phrase in ("", " ", "?!", "_"):
        with pytest.raises(BadRequest, match="has no word"):
            holders(dataset, phrase)


def test_an_index_that_is_damaged_says_which_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("index.indexes.WORDS_ABOVE", 0)
    made = table(tmp_path, [("a", "b c")])
    keep_words(made, 1)
    for path in (tmp_path / "passages.lance" / "_indices").rglob("*.lance"):
        path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(StoreError, match=r"passages.lance cannot be searched at version 3"):
        holders(lance.dataset(made.uri), "b c")
    assert len(WORDS) == 2
