"""The hashing embedder equals its definition, on every machine."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import BadRequest
from index.models.hashing import HashingEmbedder


def naive_hashing(text: str, dimensions: int, stop_words: set[str]) -> list[float]:
    """The definition, for ASCII: bags of words, trigrams and pairs, each feature with a hashed bucket and sign."""
    whole = (1 << 64) - 1

    def mix(x: int) -> int:
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & whole
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & whole
        return x ^ (x >> 31)

    def word_hash(word: str) -> int:
        state = 0xCBF29CE484222325
        for letter in word:
            state = (state ^ ord(letter)) * 0x100000001B3 & whole
        return mix(state)

    sums = [0] * dimensions

    def add(feature: int, weight: float) -> None:
        sums[(feature >> 32) * dimensions >> 32] += round(weight * (1 << 20)) * (1 if feature & 1 else -1)

    camel = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    words = [part for run in re.findall(r"[A-Za-z0-9]+", camel) for part in re.findall(r".{1,64}", run.lower())]
    weight = {word: 0.1 if word in stop_words else 1.0 for word in words}
    for word, count in Counter(words).items():
        add(word_hash(word), weight[word] * math.sqrt(count))
        edges = [1, *map(ord, word), 2]
        for a, b, c in zip(edges, edges[1:], edges[2:], strict=False):
            add(mix(1 << 60 | a << 36 | b << 18 | c), weight[word] * math.sqrt(count) / math.sqrt(len(word)))
    for (a, b), count in Counter(pairwise(words)).items():
        pair = mix((word_hash(a) * 3 + word_hash(b)) & whole)
        add(pair, 0.3 * math.sqrt(weight[a] * weight[b]) * math.sqrt(count))
    length = math.sqrt(sum(value * value for value in sums))
    return [value / length if length else 0.0 for value in sums]


WORDS = st.sampled_from(["the", "of", "LiHua", "film", "films", "Film", "1998", "a", "B2b", "x" * 150, "is"])


@given(
    st.lists(st.one_of(WORDS, st.text("aAbB1 .-", max_size=12)), max_size=30).map(" ".join),
    st.sampled_from([1, 5, 384]),
)
def test_hashing_equals_its_definition(text: str, dimensions: int) -> None:
    expected = naive_hashing(text, dimensions, {"the", "of", "a", "is"})
    assert HashingEmbedder(dimensions).embed([text])[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_hashing_is_equal_on_every_machine_and_in_every_process() -> None:
    vectors = HashingEmbedder().embed(["LiHua met Wolfgang on 2026-01-05.", "Ünïcödé ﬁnds the 東京 tower", ""])
    assert (
        hashlib.sha256(vectors.astype("<f4").tobytes()).hexdigest()
        == "799a6254ec3ff610901b3f3b94d2f8a76168b61a454c332bc08601124116f306"
    )


def test_hashing_reads_letters() -> None:
    model = HashingEmbedder()

    def cosine(a: str, b: str) -> float:
        u, v = model.embed([a, b])
        return float(u @ v)

    assert cosine("Red Dunes", "RED, dunes!") == pytest.approx(1.0)
    assert cosine("LiHua", "li hua") == pytest.approx(1.0)
    assert cosine("ﬁlm Ｘ", "film x") == pytest.approx(1.0)
    assert (
        cosine("electric guitars", "the electrical guitar") > 0.4 > 0.2 > cosine("electric guitars", "marine biology")
    )
    assert cosine("東京大学", "東京の大学") > 0.5
    assert cosine("who directed the film of the year", "film directed year") > 0.8
    assert not model.embed(["!?… 🎉"]).any()
    assert cosine("a tag\U000e0041 or private\U0010fffd letter", "a tag or private letter") == pytest.approx(1.0)


@pytest.mark.parametrize("dimensions", [0, -1, 65537])
def test_hashing_needs_a_possible_number_of_dimensions(dimensions: int) -> None:
    with pytest.raises(BadRequest, match=str(dimensions)):
        HashingEmbedder(dimensions)
