"""What the OpenAI embedder sends, how it retries, and how it explains failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from index.errors import ModelError, ModelUnavailable
from index.models.base import unit_rows
from index.models.openai import OpenAIEmbedder

from ..support import wait_until
from .embedding_endpoint import Endpoint, serving, vector


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as endpoint:
        yield endpoint


def test_openai_sends_each_text_once_in_bounded_batches(endpoint: Endpoint) -> None:
    model = OpenAIEmbedder(
        "stub", base_url=endpoint.url, dimensions=16, batch_texts=3, batch_characters=100, longest=60, concurrency=2
    )
    texts = ["a", "", "b", "a", " ", "c", "d", "x" * 60, "x" * 70, "y" * 50]
    vectors = model.embed(texts)
    assert sorted(endpoint.sent()) == ["a", "b", "c", "d", "x" * 60, "y" * 50]
    assert all(len(request["input"]) <= 3 and sum(map(len, request["input"])) <= 100 for request in endpoint.requests)
    assert all(request["dimensions"] == 16 and request["encoding_format"] == "float" for request in endpoint.requests)
    expected = unit_rows(np.array([vector(text[:60], 16) if text.strip() else [0.0] * 16 for text in texts]))
    assert np.array_equal(vectors, expected)


def test_openai_bounds_its_concurrency(endpoint: Endpoint) -> None:
    model = OpenAIEmbedder("stub", base_url=endpoint.url, dimensions=16, batch_texts=1, concurrency=3)
    endpoint.pause.clear()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(model.embed, [f"t{number}" for number in range(12)])
        wait_until(lambda: endpoint.active == 3, what="three requests at once")
        endpoint.pause.set()
        assert answer.result().shape == (12, 16)
    assert endpoint.most_active == 3


def test_openai_learns_its_dimensions_once_and_only_when_asked(endpoint: Endpoint) -> None:
    model = OpenAIEmbedder("stub", base_url=endpoint.url)
    assert not endpoint.requests
    assert model.dimensions == 16 and model.fingerprint.startswith("openai:stub:16")
    model.embed(["a"])
    assert endpoint.sent() == ["dimensions", "a"] and "dimensions" not in endpoint.requests[0]
    assert OpenAIEmbedder("stub", base_url="http://127.0.0.1:9/v1", dimensions=16).fingerprint == model.fingerprint


def test_openai_retries_what_may_pass(endpoint: Endpoint) -> None:
    model = OpenAIEmbedder("stub", base_url=endpoint.url, dimensions=16, max_retries=3)
    endpoint.faults = [lambda request: (429, {}), lambda request: (500, {}), lambda request: (503, "busy")]
    assert model.embed(["a"]).any()
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        (lambda request: (429, {"error": {"message": "slow down"}}), ModelUnavailable, "429.*slow down"),
        (lambda request: (500, "<html>"), ModelUnavailable, "500"),
        (lambda request: (401, {"error": {"message": "bad key"}}), ModelUnavailable, "bad key.*OPENAI_API_KEY"),
        (lambda request: (404, {}), ModelUnavailable, "GISTREAM_EMBEDDING_BASE_URL"),
        (lambda request: (400, {"error": {"message": "too long"}}), ModelError, "too long"),
        (lambda request: (200, "no json"), ModelUnavailable, "embeddings"),
        (lambda request: (200, []), ModelUnavailable, "embeddings"),
        (lambda request: (200, {"data": []}), ModelUnavailable, "embeddings"),
        (
            lambda request: (200, {"data": [{"index": 0, "embedding": [1.0] * 16}]}),
            ModelUnavailable,
            "1 vectors to 2 texts",
        ),
        (
            lambda request: (200, {"data": [{"index": 0, "embedding": [1.0]}] * 2}),
            ModelUnavailable,
            "vectors to 2 texts",
        ),
        (
            lambda request: (200, {"data": [{"index": i, "embedding": [1.0] * 3} for i in (0, 1)]}),
            ModelUnavailable,
            "3 dimensions",
        ),
        (
            lambda request: (200, {"data": [{"index": i, "embedding": [1.0] * (3 + i)} for i in (0, 1)]}),
            ModelUnavailable,
            "embed",
        ),
        (
            lambda request: (200, {"data": [{"index": i, "embedding": ["x"] * 16} for i in (0, 1)]}),
            ModelUnavailable,
            "embed",
        ),
        (
            lambda request: (200, {"data": [{"index": i, "embedding": [math.nan] * 16} for i in (0, 1)]}),
            ModelUnavailable,
            "finite",
        ),
        (lambda request: (200, {"data": [{"index": i, "embedding": []} for i in (0, 1)]}), ModelUnavailable, "finite"),
    ],
)
def test_openai_explains_failures(
    endpoint: Endpoint, fault: Callable[[dict[str, Any]], tuple[int, object]], error: type[ModelError], says: str
) -> None:
    model = OpenAIEmbedder("stub", base_url=endpoint.url, dimensions=16, max_retries=0)
    endpoint.faults = [fault]
    with pytest.raises(error, match=says) as raised:
        model.embed(["a", "b"])
    assert type(raised.value) is error
    assert endpoint.url in str(raised.value) and raised.value.hint
    assert model.embed(["a", "b"]).shape == (2, 16)


def test_openai_gives_up_on_silence(endpoint: Endpoint) -> None:
    endpoint.pause.clear()
    model = OpenAIEmbedder("stub", base_url=endpoint.url, dimensions=16, timeout=0.1, max_retries=0)
    with pytest.raises(ModelUnavailable, match="did not answer"):
        model.embed(["a"])
    nobody = OpenAIEmbedder("stub", base_url="http://127.0.0.1:9/v1", dimensions=16, max_retries=0)
    with pytest.raises(ModelUnavailable, match="did not answer"):
        nobody.embed(["a"])


def test_openai_stops_buying_after_a_failure(endpoint: Endpoint) -> None:
    model = OpenAIEmbedder("stub", base_url=endpoint.url, dimensions=16, batch_texts=1, concurrency=1, max_retries=0)
    endpoint.faults = [lambda request: (401, {})]
    with pytest.raises(ModelError):
        model.embed([f"t{number}" for number in range(50)])
    assert len(endpoint.requests) < 10
