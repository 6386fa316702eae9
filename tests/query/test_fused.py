"""Tests of `fused`: the whole recipe against a naive one, and what each of its steps is for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from index.errors import BadRequest
from index.types import Passage
from query.modes.asked import rest_of
from query.retrieve import Answer, retrieve
from tests.support_index import SmallIndex, a_passage

from .naive_fused import Naive

TEXTS = (
    "Ida Holm keeps the lamp of Varn. She sails the Sula.",
    "The Sula was built by Jon Brekke in Tarn Bay.",
    "Varn is an island. Nobody lives on Varn but Ida Holm.",
    "Tarn Bay lies north of Varn. Jon Brekke was born there.",
    "Jon Brekke: Where is the Sula?\nIda Holm: At Tarn Bay. I moored her there.",
    "The lamp is lit. It burns oil.",
    "",
)
TITLES = ("", "Sula", "The Lamp", "Tarn Bay", "Varn (island)", "Jon Brekke", "Lamp of Varn")
METADATA = ("{}", '{"order":1,"session":"s"}', '{"order":2,"session":"s"}')
QUESTIONS = (
    "Where was the builder of the Sula born?",
    "Who keeps the lamp of Varn?",
    "who built the boat that Ida Holm sails",
    "Tarn Bay",
)

rows = st.builds(
    lambda text, title, metadata: a_passage("", text, title=title, metadata=metadata),
    st.sampled_from(TEXTS),
    st.sampled_from(TITLES),
    st.sampled_from(METADATA),
)


def placed(passages: Sequence[Passage]) -> list[Passage]:
    """Each in a document of its own."""
    return [
        replace(a_passage(f"d{n}", passage.text, title=passage.title, metadata=passage.metadata), about=passage.title)
        for n, passage in enumerate(passages)
    ]


@given(st.lists(rows, min_size=1, max_size=9), st.sampled_from(QUESTIONS))
@example([a_passage("", text, title=title) for text, title in zip(TEXTS, TITLES, strict=True)], QUESTIONS[0])
@example([a_passage("", text, metadata=METADATA[n % 3]) for n, text in enumerate(TEXTS)], QUESTIONS[2])
@settings(max_examples=30)
def test_the_recipe_is_the_naive_one(passages: list[Passage], question: str) -> None:
    held = placed(passages)
    with TemporaryDirectory() as folder, SmallIndex(Path(folder)) as index:
        snapshot = index.change(held)
        found = retrieve(snapshot, index.embedder, question, mode="fused", k=20).passages
        expected = Naive(held, lambda text: index.embedder.embed([text])[0]).rank(question)
        assert [passage.score for passage in found] == pytest.approx([score for _, score in expected], abs=2e-6)
        scores = {passage.key.hex(): score for passage, score in expected}
        assert all(passage.score == pytest.approx(scores[passage.key], abs=2e-6) for passage in found)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallIndex]:
    with SmallIndex(tmp_path_factory.mktemp("fused")) as index:
        passages = [
            a_passage("sula", "The Sula is a boat of ten metres. She was built by Jon Brekke.", title="Sula"),
            a_passage("brekke", "Jon Brekke was born at Port Ellery.", title="Jon Brekke"),
            a_passage("other", "Built of oak, the Osprey is a boat of nine metres.", title="Osprey"),
            a_passage("birth", "Most people were born somewhere, in a place of their own.", title="Birth"),
            a_passage("fog", "Fog hides the sea. Fog hides the land.", title="Fog"),
        ]
        index.change([replace(passage, about=passage.title) for passage in passages])
        yield index


def ask(index: SmallIndex, question: str) -> Answer:
    return retrieve(index.snapshot, index.embedder, question, mode="fused", with_explanation=True)


def test_the_second_hop_is_found_over_the_name_that_both_share_and_says_so(index: SmallIndex) -> None:
    answer = ask(index, "Where was the builder of the Sula born?")
    assert answer.explanation is not None and answer.explanation.anchor == "sula"
    assert answer.explanation.titles[0].title == "sula" and answer.explanation.titles[0].sure == 1.0
    assert answer.explanation.rest == "Where was the builder of the born?"
    first, second = answer.passages[:2]
    assert (first.document, second.document) == ("sula", "brekke")
    assert second.why is not None and second.why.leapt is not None
    assert (second.why.leapt.document, second.why.leapt.name) == ("sula", "Jon Brekke")
    assert second.why.leapt.sentence == "She was built by Jon Brekke."


def test_the_parts_and_the_leap_are_the_score(index: SmallIndex) -> None:
    for passage in ask(index, "Where was the builder of the Sula born?").passages[1:]:
        assert passage.why is not None and passage.why.parts is not None
        gain = passage.why.leapt.gain if passage.why.leapt else 0.0
        by_itself = sum(dict(passage.why.parts).values()) + gain
        # What it got back for leading to others comes on top.
        assert -1e-9 <= passage.score - by_itself <= 0.25


def test_an_index_without_sentences_says_how_to_get_them(tmp_path: Path) -> None:
    with SmallIndex(tmp_path, sentences=False) as index:
        snapshot = index.change([a_passage("a", "Ida Holm keeps the lamp.")])
        assert snapshot.dataset("sentences").count_rows() == 0
        with pytest.raises(BadRequest, match="gistream rebuild"):
            retrieve(snapshot, index.embedder, "Who keeps the lamp?", mode="fused")


@pytest.mark.parametrize(
    ("title", "rest"),
    [
        ("sula", "Where was the builder of the born?"),
        ("tarn bay", None),
        ("builders of the sula", "Where was the of the born?"),
        ("", None),
    ],
)
def test_the_rest_is_asked_without_the_words_that_name_the_first(title: str, rest: str | None) -> None:
    assert rest_of("Where was the builder of the Sula born?", title) == rest


def test_nothing_is_left_to_ask_of_a_question_that_is_a_name() -> None:
    assert rest_of("The Amber Lock", "amber lock") is None
