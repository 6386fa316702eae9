"""Laws that every embedder must keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.models.base import Embedder, unit_rows
from index.models.hashing import HashingEmbedder
from index.models.local import LocalEmbedder
from index.models.openai import OpenAIEmbedder
from index.models.recorded import RecordedEmbedder, Recording
from index.models.remembered import Remembering

from .bert_files import tiny
from .embedding_endpoint import Endpoint, serving

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=6)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("model"))


MAKERS: dict[str, Callable[[Endpoint, Path], Embedder]] = {
    "hashing": lambda endpoint, files: HashingEmbedder(),
    "hashing into few": lambda endpoint, files: HashingEmbedder(7),
    "local": lambda endpoint, files: LocalEmbedder(folder=files),
    "openai": lambda endpoint, files: OpenAIEmbedder("stub", base_url=endpoint.url, batch_texts=3),
    "recorded": lambda endpoint, files: RecordedEmbedder(
        [Recording.of({"one": [3.0, 4.0], "two": [0.0, -2.0]})], model="m", fallback=HashingEmbedder(2)
    ),
    "remembered": lambda endpoint, files: Remembering(HashingEmbedder(9), capacity=2),
}


@pytest.fixture(params=MAKERS)
def embedder(request: pytest.FixtureRequest, endpoint: Endpoint, files: Path) -> Embedder:
    return MAKERS[request.param](endpoint, files)


@given(TEXTS)
def test_rows_are_unit_or_zero_in_order_and_independent(embedder: Embedder, texts: list[str]) -> None:
    vectors = embedder.embed(texts)
    assert vectors.shape == (len(texts), embedder.dimensions) and vectors.dtype == np.float32
    for text, vector in zip(texts, vectors, strict=True):
        length = np.linalg.norm(vector.astype(np.float64))
        assert length == pytest.approx(1.0, abs=1e-6) or not vector.any()
        assert text.strip() or not vector.any()
        assert np.array_equal(embedder.embed([text])[0], vector)
        assert np.array_equal(embedder.embed([text, "other", text])[2], vector)


def test_texts_with_content_have_a_vector(embedder: Embedder) -> None:
    texts = [
        "one",
        "two",
        "Äpfel und Öl",
        "今日は良い天気",
        "Привет, мир",
        "שלום עולם",
        "नमस्ते",
        "1998",
        "word " * 200_000,
    ]
    vectors = embedder.embed(texts)
    assert np.all(np.linalg.norm(vectors, axis=1) > 0.99)
    assert embedder.embed([]).shape == (0, embedder.dimensions)
    assert not embedder.embed(["", " \n\t"]).any()


def test_threads_get_the_same_vectors(embedder: Embedder) -> None:
    texts = [f"text {number}" for number in range(20)]
    expected = embedder.embed(texts)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: embedder.embed(texts), range(8)):
            assert np.array_equal(vectors, expected)


def test_the_fingerprint_tells_models_and_dimensions_apart(endpoint: Endpoint, files: Path) -> None:
    prints = [make(endpoint, files).fingerprint for make in MAKERS.values()]
    prints += [OpenAIEmbedder(name, base_url=endpoint.url, dimensions=d).fingerprint for name in "ab" for d in (4, 8)]
    prints.append(OpenAIEmbedder("a", base_url=endpoint.url, dimensions=4, longest=10).fingerprint)
    assert len(set(prints)) == len(prints)


@given(st.lists(st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=3), max_size=4))
@example([[0.0, 0.0, 1e-200], [3e200, -4e200, 0.0], [0.0, 0.0, 0.0]])
def test_unit_rows_keep_direction(rows: list[list[float]]) -> None:
    vectors = np.array(rows).reshape(-1, 3)
    units = unit_rows(vectors)
    for vector, unit in zip(vectors.tolist(), units.tolist(), strict=True):
        length = math.hypot(*vector)
        assert [value * length for value in unit] == pytest.approx(vector, rel=0, abs=length * 1e-6)
