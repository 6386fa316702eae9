"""What is a name and in which form, what a document is about, and whose a sentence is."""

from __future__ import annotations

from typing import Any

import pytest

from index.naming import DOUBTFUL, SURE, about, name_form, names_in, sentences_of, telling, title_form, words
from tests.support_index import a_passage


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("The Amber Lock", "amber lock"),
        ("Schindler's List", "schindler list"),
        ("Schindler’s List", "schindler list"),
        ("Theodore", "theodore"),
        ("the", ""),
        ("ＦＯＯ-bar", "foo bar"),
        ("?!", ""),
    ],
)
def test_two_spellings_of_a_name_have_one_form(written: str, form: str) -> None:
    assert name_form(written) == form


@pytest.mark.parametrize(
    ("title", "form"),
    [("Mercury (planet)", "mercury"), ("LiHua", "li hua"), ("(untitled)", "untitled"), ("The Who (band)", "who")],
)
def test_a_title_stands_for_a_name(title: str, form: str) -> None:
    assert title_form(title) == form


def test_the_words_of_a_form_stand_in_a_row_in_every_sentence_that_has_the_name() -> None:
    for sentence in ("We saw Schindler's List twice.", "we saw SCHINDLER LIST twice"):
        assert " schindler list " in f" {' '.join(words(sentence))} "
    assert words("LiHua's boat") == ["li", "hua", "boat"]


def test_terms_that_an_elision_may_change_do_not_tell() -> None:
    assert telling("don t look back") == {"look", "back"}
    assert telling("who") == frozenset()


def test_sure_and_doubtful_names_of_a_sentence() -> None:
    assert names_in("Osprey sank, and Bo saw it.") == {"osprey": DOUBTFUL, "bo": SURE}
    assert names_in("Osprey was Osprey.") == {"osprey": DOUBTFUL | SURE}
    assert names_in("Hey Adam, it sank.") == {"adam": SURE}


@pytest.mark.parametrize(
    ("title", "text", "metadata", "expected"),
    [
        ("  The  Lamp ", "Ida Holm keeps it.", {}, "The Lamp"),
        ("", "Ida Holm keeps the lamp. Varn is far.", {}, "Ida Holm"),
        ("", "Osprey is a boat.", {}, "Osprey"),
        ("", "nobody was there", {}, ""),
        ("", "Ida: I keep the lamp of Varn.", {}, ""),
        ("", "It burns.\nIda: I keep the lamp of Varn.", {}, ""),
        ("", "Ida van Holm: I keep the lamp of Varn.", {}, ""),
        ("", "The lamps of Varn are three: one is lit.", {}, "Varn"),
        ("", "Ida Holm keeps the lamp.", {"speaker": "Bo"}, ""),
        ("", "Ida Holm keeps the lamp.", {"session": 3}, ""),
        ("", "", {}, ""),
    ],
)
def test_a_document_is_about_its_title_or_its_first_name_but_a_message_is_not(
    title: str, text: str, metadata: dict[str, Any], expected: str
) -> None:
    assert about(title, text, metadata) == expected


def test_a_sentence_carries_its_title_or_its_speaker() -> None:
    chat = a_passage("a", "Ida: I keep the lamp. It burns.\nBo: Where? I see none.")
    assert [said.text for said in sentences_of(chat)] == [
        "Ida: I keep the lamp.", "Ida: It burns.", "Bo: Where?", "Bo: I see none."
    ]  # fmt: skip
    message = a_passage("a", "I keep the lamp. It burns.", metadata='{"speaker":"Ida  Holm"}')
    assert [said.text for said in sentences_of(message)] == ["Ida Holm: I keep the lamp.", "Ida Holm: It burns."]
    titled = a_passage("a", "It burns oil.", title="The Lamp", about="The Lamp")
    assert [said.text for said in sentences_of(titled)] == ["The Lamp: It burns oil."]


def test_twins_in_one_passage_are_two_sentences() -> None:
    keys = [said.key for said in sentences_of(a_passage("a", "It burns. It burns."))]
    assert len(set(keys)) == 2
