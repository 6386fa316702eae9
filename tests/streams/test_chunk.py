"""Passages hold the whole text, keep their bounds, and an edit changes only those around it."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.chunk import CONTENT, WHOLE, ChunkConfig, chunk, keyed

WORDS = "river stone cloud market engine letter garden winter signal copper valley harbour theory paper song".split()
SMALL = ChunkConfig(least=5, most=24)

sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(
    lambda words: " ".join(words).capitalize() + "."
)
document = st.lists(sentence | st.sampled_from(["\n\n", "你好吗？", "x" * 700, "  "]), max_size=60).map(" ".join)


def written(count: int, seed: int = 0) -> list[str]:
    """Sentences of 5 to 25 words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(5, 25))).capitalize() + "." for _ in range(count)]


@given(document, st.sampled_from([CONTENT, SMALL]))
def test_no_text_is_lost_and_none_is_added(text: str, config: ChunkConfig) -> None:
    passages = chunk(text, config)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert all(passage == passage.strip() != "" for passage in passages)


@given(st.lists(sentence, max_size=60), st.sampled_from([CONTENT, SMALL]))
def test_passages_keep_their_bounds(sentences: list[str], config: ChunkConfig) -> None:
    sizes = [len(passage.split()) for passage in chunk(" ".join(sentences), config)]
    if len(sizes) > 1:
        assert min(sizes) >= config.least
    assert max(sizes, default=0) <= config.most


def test_the_usual_passage_has_about_a_hundred_words() -> None:
    sizes = [len(passage.split()) for passage in chunk(" ".join(written(2_000)))]
    assert 75 <= mean(sizes) <= 125
    assert CONTENT.least <= min(sizes) and max(sizes) <= CONTENT.most


Edit = Callable[[list[str], int, str], list[str]]
EDITS: dict[str, Edit] = {
    "insert": lambda sentences, place, new: [*sentences[:place], new, *sentences[place:]],
    "delete": lambda sentences, place, _: [*sentences[:place], *sentences[place + 1 :]],
    "replace": lambda sentences, place, new: [*sentences[:place], new, *sentences[place + 1 :]],
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edit_changes_only_the_passages_around_it(edit: Edit) -> None:
    sentences = written(1_300)
    before = set(chunk(" ".join(sentences)))
    assert len(before) >= 200
    rng = random.Random(1)
    changed = []
    for number in range(25):
        edited = edit(sentences, rng.randrange(len(sentences)), f"Edit number {number} tells something new.")
        after = set(chunk(" ".join(edited)))
        changed.append(max(len(after - before), len(before - after)))
    assert median(changed) <= 3
    assert max(changed) <= 8


def test_an_edit_leaves_every_passage_far_from_it() -> None:
    sentences = written(400)
    passages = chunk(" ".join(sentences))
    edited = chunk(" ".join([*sentences[:200], "Something new happened here.", *sentences[200:]]))
    assert passages[:20] == edited[:20] and passages[-20:] == edited[-20:]


@pytest.mark.parametrize(
    "text",
    [
        "word " * 100_000,
        "Same line of words.\n" * 20_000,
        "x" * 500_000,
        "我们去北京。" * 20_000,
        "我" * 100_000,
        "a\n" * 50_000,
    ],
    ids=["word", "line", "no blanks", "chinese", "chinese without stops", "short lines"],
)
def test_monotonous_text_gives_bounded_passages(text: str) -> None:
    passages = chunk(text)
    assert max(len(passage.split()) for passage in passages) <= CONTENT.most
    assert max(len(passage.encode()) for passage in passages) <= 10 * CONTENT.most


@pytest.mark.parametrize("text", ["", " \n\t ", "\u3000"])
@pytest.mark.parametrize("config", [CONTENT, WHOLE])
def test_a_blank_text_has_no_passage(text: str, config: ChunkConfig) -> None:
    assert chunk(text, config) == []


def test_whole_keeps_the_text_as_it_is() -> None:
    text = "  One.\nTwo.  " * 200
    assert chunk(text, WHOLE) == [text]


@given(st.lists(sentence, max_size=30))
def test_keys_are_distinct_and_belong_to_document_and_text(sentences: list[str]) -> None:
    text = " ".join(sentences * 2)
    rows = keyed("notes", "a", text, SMALL)
    assert [passage for _, passage in rows] == chunk(text, SMALL)
    assert len({key for key, _ in rows}) == len(rows)
    assert rows == keyed("notes", "a", text, SMALL)
    assert {key for key, _ in rows}.isdisjoint(key for key, _ in keyed("notes", "b", text, SMALL))


def test_the_fingerprint_tells_settings_apart() -> None:
    prints = [config.fingerprint for config in (CONTENT, WHOLE, SMALL)]
    assert all(one != other for one, other in pairwise(sorted(prints)))


@pytest.mark.parametrize(("least", "most"), [(0, 100), (50, 100), (-1, 5)])
def test_impossible_bounds_are_refused(least: int, most: int) -> None:
    with pytest.raises(ValueError, match=f"not {least} and {most}"):
        ChunkConfig(least=least, most=most)
