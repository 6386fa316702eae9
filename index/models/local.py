"""An embedder inside this process: a sentence model in ONNX, run by fastembed, an extra of the installation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, ModelUnavailable
from ..types import Role
from .base import ALIAS_THRESHOLD, unit_rows

DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_PIECES: Final = {DEFAULT_MODEL: 256}
"""Word pieces that a model reads of a text, where its authors' limit is known; files of other makers set others."""

_LONGEST = 24_000
"""Characters of a text that are cut into pieces at all: more than any model reads, unless nearly all are blanks."""
_BATCH_TEXTS = 32
_BATCH_PIECES = 2048
"""Word pieces in one run of the model: larger ones are no faster and leave the processor's caches."""


class LocalEmbedder:
    """Runs the model on the processor, some milliseconds a text; calls of several threads run side by side.

    Texts of equal length run together, so that nothing is padded: padding costs time, and whether it is there must not
    move a bit. On another kind of processor the last bits may differ all the same, so vectors are kept like those of an
    endpoint: a text has one vector for as long as the namespace lives, and a rebuild does not make it again.
    """

    remote = True

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        folder: Path | None = None,
        threads: int = 1,
        alias_threshold: float | None = ALIAS_THRESHOLD,
    ) -> None:
        """`folder` holds the model's files; without one fastembed downloads them once. `threads` work on one call.

        Raises ModelError where fastembed is not installed, does not know the model, or cannot read its files, and
        ModelUnavailable where they cannot be downloaded.
        """
        self.alias_threshold = alias_threshold
        self._model = model
        self._loaded: Any = _load(model, folder, threads)
        """fastembed's own model of that kind, behind its common face."""
        pieces = _PIECES.get(model, self._loaded.tokenizer.truncation["max_length"])
        self._loaded.tokenizer.enable_truncation(max_length=pieces)
        description = self._loaded.model_description
        self.dimensions: int = description.dim
        files = [description.model_file, *description.additional_files, "tokenizer.json"]
        made = _digest([Path(self._loaded._model_dir) / name for name in files])
        self.fingerprint = f"local:{model}:{pieces}:{self.dimensions}:{made}"

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        """See Embedder. Equal texts are embedded once; what is beyond the pieces that the model reads is not."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            if text.strip():
                places.setdefault(text[:_LONGEST], []).append(place)
        for batch in self._batches(list(places)):
            try:
                rows = np.array(list(self._loaded.embed(batch, batch_size=len(batch))))
            except (RuntimeError, ValueError) as error:
                raise ModelError(
                    f"the model {self._model} could not embed {len(batch)} texts, such as {batch[0][:80]!r}: {error}",
                    hint="see whether its files are those of this model",
                ) from error
            for text, row in zip(batch, unit_rows(rows), strict=True):
                vectors[places[text]] = row
        return vectors

    def _batches(self, texts: list[str]) -> Iterator[list[str]]:
        """Texts of the same number of pieces, few enough for one run."""
        if not texts:
            return
        sizes = [sum(encoded.attention_mask) for encoded in self._loaded.tokenize(texts)]
        for pieces, group in groupby(sorted(zip(sizes, texts, strict=True)), key=lambda sized: sized[0]):
            same = [text for _, text in group]
            most = max(1, min(_BATCH_TEXTS, _BATCH_PIECES // pieces))
            yield from (same[start : start + most] for start in range(0, len(same), most))


def _load(name: str, folder: Path | None, threads: int) -> Any:
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise ModelError(
            f"the embedder `local` needs fastembed, which cannot be imported ({error})",
            hint="in the project's folder: .venv/bin/pip install --editable '.[local]'",
        ) from error
    known = {model["model"]: model for model in TextEmbedding.list_supported_models()}
    if name not in known:
        near = get_close_matches(name, [DEFAULT_MODEL, *known], n=3, cutoff=0.0)
        raise ModelError(f"fastembed knows no model {name!r}", hint=f"the names next to it are {', '.join(near)}")
    if folder is not None:
        needed = [known[name]["model_file"], "tokenizer.json", "tokenizer_config.json"]
        if missing := [file for file in needed if not (folder / file).is_file()]:
            raise ModelError(
                f"{folder} has no {' and no '.join(missing)}, which the model {name} needs",
                hint="setting embedding_folder names a folder with the files of that model in ONNX",
            )
    place: dict[str, Any] = {} if folder is None else {"specific_model_path": str(folder)}
    try:
        return TextEmbedding(name, threads=threads, **place).model
    except Exception as error:
        # Whatever reads or downloads the files has errors of its own; none of them comes of a text.
        if folder is None:
            hint = "connect the machine for once, or set embedding_folder to a folder with the model's files"
            raise ModelUnavailable(f"the model {name} could not be downloaded: {error}", hint=hint) from error
        hint = "copy the files of that model again"
        raise ModelError(f"the model {name} does not load from {folder}: {error}", hint=hint) from error


def _digest(files: Sequence[Path]) -> str:
    """Eight hexadecimal digits of what the files hold."""
    whole = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:8]
