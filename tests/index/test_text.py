"""Normal forms and terms against slow references, on any Unicode text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.text import LONGEST_TERM, clean, norm, terms

unicode_text = st.text(st.characters(codec="utf-8"), max_size=60)


def reference_norm(text: str) -> str:
    """Step 5 of methods/cogito.md 2.2, letter by letter."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(c if unicodedata.category(c)[0] in "LMNS" or c in "#%&@" else " " for c in folded).split())


@given(unicode_text)
def test_norm_is_the_specified_form(text: str) -> None:
    assert norm(text) == reference_norm(text)


@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_the_short_way_for_ascii_gives_the_same(text: str) -> None:
    assert norm(text) == reference_norm(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("  The\tBeatles ", "the beatles"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("Straße", "STRASSE"),
        ("Jean-Paul", "jean paul"),
        ("Ελλάδα", "ΕΛΛΆΔΑ"),
        ("日本国", "日本国"),
    ],
)
def test_spellings_of_one_name_meet(one: str, other: str) -> None:
    assert norm(one) == norm(other) != ""


def test_names_that_symbols_tell_apart_stay_apart() -> None:
    assert len({norm(name) for name in ("C", "C++", "C#", "AT&T", "50%", "@home", "$5")}) == 7


@given(unicode_text)
def test_clean_changes_nothing_but_white_space(text: str) -> None:
    assert clean(text).split() == text.split()
    assert clean(clean(text)) == clean(text)
    assert "  " not in clean(text)


@given(unicode_text, unicode_text)
def test_terms_of_two_texts_add_up(one: str, other: str) -> None:
    left, right, both = terms(one), terms(other), terms(f"{one}\n{other}")
    assert both == {term: left.get(term, 0) + right.get(term, 0) for term in left.keys() | right.keys()}


@pytest.mark.parametrize(
    "text", ["vienna", "Москва", "हिन्दी", "北京", "京", "東京タワー", "서울", "กรุงเทพ", "Ⅻ", "x" * 99]
)
def test_every_script_can_be_found_inside_a_sentence(text: str) -> None:
    asked = terms(text)
    assert asked
    assert asked.keys() <= terms(f"About {text} , again").keys()


def test_scripts_without_blanks_are_found_by_a_part() -> None:
    assert terms("北京").keys() <= terms("我们明天去北京看朋友").keys()


def test_marks_belong_to_their_word() -> None:
    assert len(terms("हिन्दी")) == 1
    assert terms("Jose\u0301") == terms("José")


def test_terms_of_a_sentence() -> None:
    text = "Who didn't like LiHua's GitHub pages? Running, he runs."
    once = ("like", "lihua", "li", "hua", "github", "git", "hub", "page")
    assert terms(text) == {**dict.fromkeys(once, 1), "run": 2}


def test_terms_stay_short() -> None:
    assert max(map(len, terms("A" * 10_000 + " " + "é" * 10_000))) <= LONGEST_TERM
