"""The local embedder: real models from files, vectors that no batch moves, and errors that say what to do."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from index.errors import ModelError, ModelUnavailable
from index.models.local import DEFAULT_MODEL, LocalEmbedder
from index.models.recorded import Recording

from ..support import without_tool
from .bert_files import minilm, tiny

TEXTS = ["the text", "the word", "a text of more words " * 9, "text", "the text", *(f"word {n}" for n in range(70))]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> LocalEmbedder:
    folder = minilm(tmp_path_factory.mktemp("minilm"))
    if folder is None:
        without_tool("all-MiniLM-L6-v2")
    return LocalEmbedder(folder=folder)


def check_batches(embedder: LocalEmbedder, texts: list[str]) -> None:
    together = embedder.embed(texts)
    assert np.array_equal(together, np.concatenate([embedder.embed([text]) for text in texts]))
    assert np.array_equal(together[::-1], embedder.embed(texts[::-1]))


def test_no_batch_moves_a_bit(files: Path) -> None:
    check_batches(LocalEmbedder(folder=files), TEXTS)


def test_equal_texts_run_once_and_nothing_is_padded(files: Path) -> None:
    embedder = LocalEmbedder(folder=files)
    batches = list(embedder._batches(list(dict.fromkeys(TEXTS))))
    assert sum(map(len, batches)) == len(set(TEXTS))
    assert max(map(len, batches)) == 32 and len(batches) < 10
    for batch in batches:
        assert len({len(encoded.ids) for encoded in embedder._loaded.tokenize(batch)}) == 1


def test_the_fingerprint_names_the_files_and_not_their_place(files: Path, tmp_path: Path) -> None:
    made = LocalEmbedder(folder=files).fingerprint
    assert made.startswith(f"local:{DEFAULT_MODEL}:256:384:")
    copied = shutil.copytree(files, tmp_path / "copied")
    assert LocalEmbedder(folder=copied, threads=2).fingerprint == made
    assert LocalEmbedder(folder=tiny(tmp_path / "other", seed=7)).fingerprint != made


def test_what_is_missing_is_named_with_what_to_do(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"has no model.onnx and no tokenizer.json"):
        LocalEmbedder(folder=tmp_path)
    with pytest.raises(ModelError, match=r"knows no model 'all-MiniLM-L6'.*sentence-transformers/all-MiniLM-L6-v2"):
        LocalEmbedder("all-MiniLM-L6")
    torn = shutil.copytree(files, tmp_path / "torn")
    (torn / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match="does not load from"):
        LocalEmbedder(folder=torn)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "fastembed", None)
        with pytest.raises(ModelError, match=r"pip install --editable '\.\[local\]'"):
            LocalEmbedder(folder=files)


def test_a_model_that_cannot_be_downloaded_may_be_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no route")

    monkeypatch.setattr("fastembed.TextEmbedding.__init__", unreachable)
    with pytest.raises(ModelUnavailable, match="embedding_folder"):
        LocalEmbedder()


def test_the_real_model_knows_meaning(real: LocalEmbedder) -> None:
    car, automobile, banana = real.embed(["a fast car", "a quick automobile", "a ripe banana"])
    assert car @ automobile > 0.7 > 0.4 > car @ banana
    check_batches(real, [*TEXTS, "Marie Curie discovered radium.", "Wien liegt an der Donau. " * 40])


@pytest.mark.kit
def test_the_real_model_gives_the_recorded_vectors(real: LocalEmbedder, kit: Path) -> None:
    recording = Recording.load(kit / "embeddings" / "musique_train.passages_questions.npz")
    with gzip.open(kit / "musique_train" / "passages.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(24), strict=False)]
    texts = [f"{row['title']}\n{row['text']}" for row in rows]
    recorded = np.array([recording.vectors[recording.find(text)] for text in texts], np.float32)
    cosines = np.einsum("nd,nd->n", real.embed(texts), recorded / np.linalg.norm(recorded, axis=1, keepdims=True))
    assert cosines.min() > 0.99999
