"""The embedder of an index is found by its fingerprint, whatever the settings name by now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deploy.assembly import build_embedder
from deploy.embedders import Deferred, Embedders
from deploy.settings import Settings
from index.errors import ModelUnavailable
from index.models.base import Embedder

from ..index.bert_files import tiny
from ..index.embedding_endpoint import Endpoint, serving

TEXT = ["Who repaired the Tern?"]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as endpoint:
        yield endpoint


def settings(**given: Any) -> Settings:
    return Settings.model_validate({"embedding_dimensions": None, **given})


def embedders(now: Settings) -> Embedders:
    return Embedders(now, Deferred(lambda: build_embedder(now)), lambda embedder: embedder)


def same(found: Embedder, made: Embedder) -> bool:
    return found.fingerprint == made.fingerprint and np.array_equal(found.embed(TEXT), made.embed(TEXT))


def test_models_of_every_kind_are_had_again(endpoint: Endpoint, tmp_path: Path) -> None:
    one, other = tiny(tmp_path / "one", seed=1), tiny(tmp_path / "other", seed=2)
    openai = settings(embedder="openai", embedding_base_url=endpoint.url, embedding_model="name:tag")
    local = settings(embedder="local", embedding_folder=one)
    hashing = settings(embedder="hashing", embedding_dimensions=64)
    former = {"former_embedding_base_url": endpoint.url, "former_embedding_folder": one}
    now = [
        settings(embedder="hashing", **former),
        settings(embedder="local", embedding_folder=other, **former),
        settings(embedder="openai", embedding_base_url="http://127.0.0.1:9/v1", embedding_dimensions=3, **former),
        settings(embedder="openai", embedding_base_url=endpoint.url, embedding_folder=one),
    ]
    shorter = openai.model_copy(update={"embedding_dimensions": 2})
    for present in now:
        found = embedders(present)
        for made in map(build_embedder, (openai, shorter, local, hashing)):
            assert same(found(made.fingerprint), made), (present, made.fingerprint)


def test_what_cannot_be_had_is_left_to_the_present_one_which_is_refused(tmp_path: Path) -> None:
    found = embedders(settings(embedding_dimensions=32))
    for made in ("recorded:all-MiniLM-L6-v2:384", "hashing:0:64", "unheard of"):
        assert found(made).fingerprint == "hashing:1:32"


def test_no_model_is_looked_at_before_it_is_needed(endpoint: Endpoint) -> None:
    made = build_embedder(settings(embedder="openai", embedding_base_url=endpoint.url, embedding_model="m")).fingerprint
    away = settings(embedder="openai", embedding_base_url="http://127.0.0.1:9/v1", embedding_model="m")
    found = embedders(away)(made)
    with pytest.raises(ModelUnavailable):
        found.embed(TEXT)


def test_a_question_is_asked_once(endpoint: Endpoint) -> None:
    now = settings(embedder="openai", embedding_base_url=endpoint.url, embedding_model="m")
    found, made = embedders(now), build_embedder(now).fingerprint
    found(made).embed(TEXT, "fact-question")
    before = len(endpoint.requests)
    found(made).embed(TEXT, "passage-question")
    assert len(endpoint.requests) == before
