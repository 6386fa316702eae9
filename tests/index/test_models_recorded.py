"""Recordings: found exactly, in lower case, by role; missing ones counted or asked; damaged files refused."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import MissingRecording, ModelError
from index.models.openai import OpenAIEmbedder
from index.models.recorded import RecordedEmbedder, Recording

from .embedding_endpoint import serving


def save(path: Path, vectors: dict[str, list[float]], **changes: Any) -> Path:
    keys = sorted((hashlib.sha256(text.encode()).digest(), row) for row, text in enumerate(vectors))
    arrays: dict[str, Any] = {
        "keys": np.frombuffer(b"".join(key for key, _ in keys), dtype=np.uint8).reshape(-1, 32),
        "row": np.array([row for _, row in keys], dtype=np.int32),
        "vec": np.array(list(vectors.values()), dtype=np.float16),
    }
    np.savez(path, **{name: value for name, value in (arrays | changes).items() if value is not None})
    return path


@given(st.dictionaries(st.text(max_size=5), st.lists(st.floats(-2, 2, width=16), min_size=3, max_size=3), min_size=1))
def test_a_recording_finds_exactly_its_texts(vectors: dict[str, list[float]]) -> None:
    recording = Recording.of(vectors)
    assert len(recording) == len(vectors)
    for text, vector in vectors.items():
        assert recording.vectors[recording.find(text)].tolist() == vector
        if text + "!" not in vectors:
            assert recording.find(text + "!") == -1


def test_files_are_searched_in_order_exactly_and_then_in_lower_case(tmp_path: Path) -> None:
    first = save(tmp_path / "first.npz", {"ada lovelace": [1.0, 0.0], "both": [0.0, 1.0]})
    second = save(tmp_path / "second.npz", {"Ada": [0.6, 0.8], "ada": [1.0, 0.0], "both": [1.0, 0.0]})
    model = RecordedEmbedder([Recording.load(first), Recording.load(second)], model="m")
    vectors = model.embed(["Ada Lovelace", "both", "Ada", "ADA", "  "])
    expected = np.array([[1, 0], [0, 1], [0.6, 0.8], [1, 0], [0, 0]])
    assert np.allclose(vectors, expected, atol=1e-3)
    assert not model.remote and model.alias_threshold == 0.8


def test_a_role_may_have_vectors_of_its_own() -> None:
    model = RecordedEmbedder(
        [Recording.of({"who?": [1.0, 0.0], "text": [1.0, 1.0]})],
        by_role={"fact-question": Recording.of({"who?": [0.0, 5.0]})},
        model="m",
        alias_threshold=None,
    )
    assert model.embed(["who?"], "fact-question").tolist() == [[0, 1]]
    assert model.embed(["who?"], "passage-question").tolist() == model.embed(["who?"]).tolist() == [[1, 0]]
    assert model.embed(["text"], "fact-question").tolist() == model.embed(["text"]).tolist()
    assert model.alias_threshold is None


def test_a_text_cleaned_since_is_found_as_it_was_written() -> None:
    recording = Recording.of({"two  blanks": [1.0, 0.0], "plain": [0.0, 1.0]})
    model = RecordedEmbedder([recording], model="m", written={"two blanks": "two  blanks", "Plain": "nowhere"})
    assert model.embed(["two blanks", "Plain"]).tolist() == [[1, 0], [0, 1]]


def test_missing_texts_are_counted_or_asked() -> None:
    recording = Recording.of({"known": [1.0] * 16})
    with pytest.raises(MissingRecording, match=r"2 of 3 texts.*'new'"):
        RecordedEmbedder([recording], model="m").embed(["new", "known", "newer"])
    with serving() as endpoint:
        fallback = OpenAIEmbedder("m", base_url=endpoint.url)
        model = RecordedEmbedder([recording], model="m", fallback=fallback)
        vectors = model.embed(["new", "known", "newer"])
        assert np.array_equal(vectors[[0, 2]], fallback.embed(["new", "newer"])) and np.allclose(vectors[1], 0.25)
        assert "known" not in endpoint.sent() and model.remote


def test_parts_of_different_models_are_refused() -> None:
    with pytest.raises(ModelError, match=r"\[2, 3\] dimensions"):
        RecordedEmbedder([Recording.of({"a": [1.0, 0.0]}), Recording.of({"b": [1.0, 0.0, 0.0]})], model="m")
    with pytest.raises(ModelError, match="no dimensions"):
        RecordedEmbedder([], model="m")


@pytest.mark.parametrize(
    "changes",
    [
        {"vec": None},
        {"keys": np.zeros((2, 16), dtype=np.uint8)},
        {"keys": np.array([[9] * 32, [1] * 32], dtype=np.uint8)},
        {"row": np.array([0, 2])},
        {"row": np.array([0])},
        {"vec": np.array([[1.0, np.nan], [0.0, 1.0]], dtype=np.float16)},
    ],
)
def test_files_that_are_no_recordings_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = save(tmp_path / "file.npz", {"a": [1.0, 0.0], "b": [0.0, 1.0]}, **changes)
    with pytest.raises(ModelError, match=re.escape(str(path))):
        Recording.load(path)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "file.npz", {"a": [1.0, 0.0]})
    path.write_bytes(path.read_bytes()[:-40])
    for wrong in (path, tmp_path / "none.npz"):
        with pytest.raises(ModelError, match=re.escape(str(wrong))):
            Recording.load(wrong)


@pytest.mark.kit
def test_the_kit_is_read(kit: Path) -> None:
    recording = Recording.load(kit / "embeddings/musique_train.entities_gpt35.npz")
    model = RecordedEmbedder([recording], model="all-MiniLM-L6-v2")
    vectors = model.embed(["United States", "united states", "UNITED STATES", "France"])
    assert model.dimensions == 384 and np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert np.allclose(vectors[0], vectors[1]) and np.allclose(vectors[0], vectors[2]) and vectors[0] @ vectors[3] < 0.9
