"""Measured models are the models inside, and every call of them is seen."""

from __future__ import annotations

import numpy as np
import pytest

from deploy.measured import MeasuredEmbedder, measured
from index.errors import ModelUnavailable
from index.metrics import Metrics
from index.models.hashing import HashingEmbedder
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.pipeline import Pipeline


def test_a_measured_pipeline_makes_the_same_index() -> None:
    plain = Pipeline(CONTENT, RulesExtractor(), HashingEmbedder(64))
    metrics = Metrics()
    seen = measured(plain, metrics)
    assert seen.fingerprint == plain.fingerprint
    assert seen.embedder.remote == plain.embedder.remote
    texts = ["Anna met Bert.", "Bert left."]
    assert np.array_equal(seen.embedder.embed(texts), plain.embedder.embed(texts))
    passages = [("", text) for text in texts]
    assert seen.extractor.extract(passages) == plain.extractor.extract(passages)
    text = metrics.render().decode()
    assert "gistream_texts_embedded_total 2.0" in text
    assert "gistream_embed_seconds_count 1.0" in text
    assert "gistream_extract_seconds_count 1.0" in text


def test_a_call_that_fails_is_timed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ModelUnavailable("no answer")

    metrics = Metrics()
    monkeypatch.setattr(HashingEmbedder, "embed", fail)
    with pytest.raises(ModelUnavailable):
        MeasuredEmbedder(HashingEmbedder(64), metrics).embed(["a"])
    assert "gistream_embed_seconds_count 1.0" in metrics.render().decode()
