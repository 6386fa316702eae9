"""The names of a sentence: what counts, what does not, and where it stands."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.names import MOST_WORDS, names, uncamel

VOCABULARY = "The In of the de Paris Li LiHua May Monday J. U.S. Mr. I it's Bob's \" “ ” `` '' , - & was Élan 中 1999"
WORDS = st.sampled_from(VOCABULARY.split())


@given(st.lists(WORDS | st.text(max_size=4), max_size=40).map(" ".join))
def test_names_are_places_of_the_sentence_in_order(sentence: str) -> None:
    place = -1
    for name in names(sentence):
        assert place < name.start < name.end <= len(sentence)
        assert "".join(name.text.split()) == "".join(sentence[name.start : name.end].split())
        assert 0 < len(name.text.split()) <= MOST_WORDS
        place = name.start


@given(st.lists(WORDS, max_size=20).map(" ".join))
def test_only_the_opening_word_can_be_doubtful(sentence: str) -> None:
    assert [name for name in names(sentence) if name.doubtful] in ([], [name for name in names(sentence)][:1])
    assert not any(name.doubtful for name in names(sentence, opens=False))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("In 1920 Ludwig van Beethoven met Charles de Gaulle.", ["Ludwig van Beethoven", "Charles de Gaulle"]),
        (
            "The Bank of the West hired Mr. J. R. R. Tolkien, Jean-Paul and O'Brien.",
            ["Bank of the West", "Mr. J. R. R. Tolkien", "Jean-Paul", "O'Brien"],
        ),
        ("He saw Einstein's Theory of Relativity.", ["Einstein", "Theory of Relativity"]),
        ("On Monday, in May, the U.S. Army left Washington, D.C.", ["U.S. Army", "Washington", "D.C."]),
        ("However Paris won, I think, and the American-born I did not.", ["Paris", "American"]),
        ("He sang \"Let It Be\" and ``Yesterday Once More'' to “no one”.", ["Let It Be", "Yesterday Once More"]),
        ('"I know," said Marley.', ["Marley"]),
        ("Queen Elizabeth II met Johnson & Johnson and AT&T.", ["Queen Elizabeth II", "Johnson & Johnson", "AT&T"]),
        ("We chatted with WolfgangSchulz about McDonald.", ["Wolfgang Schulz", "McDonald"]),
        ("Иван Грозный жил в Москве.", ["Иван Грозный", "Москве"]),
        ("她读了《红楼梦》。", ["红楼梦"]),
        ("It was One Two Three Four Five Six Seven Eight Nine.", []),
        ("nothing here, the end.", []),
        ("", []),
    ],
)
def test_names_of_a_sentence(sentence: str, expected: list[str]) -> None:
    assert [name.text for name in names(sentence)] == expected


def test_a_capital_at_the_start_proves_nothing() -> None:
    assert [(name.text, name.doubtful) for name in names("Dogs bark at Rex.")] == [("Dogs", True), ("Rex", False)]
    assert [(name.text, name.doubtful) for name in names("Li Hua barks.")] == [("Li Hua", False)]


def test_camel_case() -> None:
    assert uncamel("LiHua met WolfgangSchulz") == "Li Hua met Wolfgang Schulz"
    whole = "McDonald MacArthur DeLorean LaTeX iPhone USA NASAs"
    assert uncamel(whole) == whole


@pytest.mark.parametrize("unit", ["A ", "A. ", "A of ", '"', '"A', "``", "A-", "A'", "A&", ".", "A" + " " * 99, "Ab"])
def test_a_long_text_of_anything_takes_a_moment(unit: str) -> None:
    text = (unit * 200_000)[:200_000]
    began = time.process_time()
    names(text)
    assert time.process_time() - began < 5, "quadratic time would take minutes"
