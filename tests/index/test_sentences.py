"""Sentence spans tile any text, within their bounds and in linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.sentences import MOST_CHARACTERS, MOST_WORDS, sentences, spans

FRAGMENTS = ["Mr. ", "J. ", "U.S. ", "The ", "end. ", 'end." ', "?! ", "。", "।", "\n", "  ", "word ", "é", "…", "1. "]


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=150).map("".join))
def test_spans_tile_the_text_in_bounded_pieces(text: str) -> None:
    place = 0
    for start, end in spans(text):
        assert start == place < end
        assert len(text[start:end].split()) <= MOST_WORDS
        assert len(text[start:end].strip()) <= MOST_CHARACTERS
        place = end
    assert place == len(text)
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences(text))


def test_white_space_belongs_to_the_sentence_before_it() -> None:
    assert spans(" One.  Two.\n \nThree.") == [(0, 7), (7, 14), (14, 20)]


@pytest.mark.parametrize(("text", "pieces"), [("word " * 150, 3), ("x" * 1_500, 3), ("lengthy" * 10 + " ", 1)])
def test_what_has_no_full_stop_is_cut(text: str, pieces: int) -> None:
    assert len(sentences(text)) == pieces


@pytest.mark.parametrize(
    "parts",
    [
        ["It rained.", "We left."],
        ["Mr. Smith met Dr. Jones in St. Louis.", "They spoke."],
        ["J. R. R. Tolkien wrote it.", "It sold well."],
        ["He joined the U.S. Army in 1941.", "It was cold."],
        ["They moved to the U.S.", "The family grew."],
        ["Acme Inc. was sold.", "Acme Corp.", "The rest is history."],
        ["It opens at 9 a.m. on Sundays.", "Pi is 3.14 or so."],
        ['"Who is there?" she asked.', '"Nobody!"', "He left."],
        ["“Go.”", "They went (all of them).", "Then silence."],
        ["Panic! at the Disco played.", "Did you go?", "No…", "Why?!"],
        ["Milk etc. was sold approx. five times."],
        ["1. Open the box.", "2. Close it."],
        ["all lower case here.", "nobody minds."],
        ["The war ended in 1945 .", "Peace began ."],
    ],
)
def test_where_english_sentences_end(parts: list[str]) -> None:
    assert sentences(" ".join(parts)) == parts


@pytest.mark.parametrize(
    "parts",
    [
        ["我们去北京。", "你好吗？", "好！"],
        ["هل أنت هنا؟", "نعم."],
        ["वह गया।", "मैं आया।"],
        ["first line", "second line"],
    ],
)
def test_other_scripts_and_lines(parts: list[str]) -> None:
    assert sentences("\n".join(parts)) == parts
    assert sentences(("" if parts[0][-1] in "。" else " \n ").join(parts)) == parts


@pytest.mark.parametrize(
    "unit", [".", '."', "\n", " ", '"', "``", ". ", "A. ", "A ", "x", "the ", "。", "1. ", "\u0301"], ids=ascii
)
def test_a_long_text_of_anything_takes_a_moment(unit: str) -> None:
    text = (unit * 200_000)[:200_000]
    began = time.process_time()
    assert spans(text)[-1][1] == len(text)
    assert time.process_time() - began < 5, "quadratic time would take minutes"


def test_words_without_a_full_stop_are_cut_by_sixties() -> None:
    assert [len(piece.split()) for piece in sentences("ab " * 150)] == [60, 60, 30]
