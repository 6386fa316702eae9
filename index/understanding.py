"""The tables `understanding`: what models said about a text, kept so that it is never bought twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import TypeAdapter

from .answers import Answers
from .kept import Kept
from .keys import key
from .models.base import Embedder
from .types import Extraction

TABLE = "understanding"
"""Holds extractions; vectors of length d are in a table of that name and -d, so both outlive a change of models."""

_EXTRACTION = TypeAdapter(Extraction)

ANSWERS = f"{TABLE}.answers"
"""File beside the table."""


class Understanding:
    """Append-only and content-addressed rows, each an extraction or a vector; the newest extractions in a file first.

    No manifest pins it: a row is true whenever it is found.

    Duplicates are harmless. It holds only what follows from one text, so it survives edits, deletes and rebuilds.
    Deleted texts stay in it until they are erased.
    """

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._extractions = Kept(folder, TABLE, "extraction", pa.large_string())
        self._vectors = Kept(folder, f"{TABLE}-{dimensions}", "vector", pa.list_(pa.float32(), dimensions))
        self._answers = Answers(folder / ANSWERS)

    def vectors(self, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
        """Vectors (n, d) of texts; only those not known yet are embedded, once each, in one call.

        Raises what the embedder raises.
        """
        keys = [key("text", embedder.fingerprint, text) for text in texts]
        known = self._vectors.find(keys)
        unknown = {k: text for k, text in zip(keys, texts, strict=True) if k not in known}
        if unknown:
            fresh = embedder.embed(list(unknown.values()))
            values = pa.FixedSizeListArray.from_arrays(pa.array(fresh.reshape(-1)), embedder.dimensions)
            self._vectors.add(list(unknown), values)
            known.update(zip(unknown, fresh, strict=True))
        return np.array([known[k] for k in keys], np.float32).reshape(len(keys), embedder.dimensions)

    def said(self, passages: Sequence[tuple[str, str]], extractor: str) -> list[Extraction | None]:
        """What the extractor of that fingerprint said about each (title, text); None where it was never asked."""
        keys = [key("extraction", extractor, title, text) for title, text in passages]
        known = self._extractions.find(keys) | self._answers.find(keys)
        return [_EXTRACTION.validate_json(known[k]) if k in known else None for k in keys]

    def keep(self, passage: tuple[str, str], extractor: str, extraction: Extraction) -> None:
        """Keep what an extractor just said about a (title, text), whatever becomes of this process. Safe for threads.

        Raises OSError where it cannot be written.
        """
        self._answers.add(key("extraction", extractor, *passage), _EXTRACTION.dump_json(extraction).decode())

    def gather(self) -> None:
        """Bring what was kept since the last time into the table, all at once: it likes few large pieces."""
        if kept := self._answers.all():
            self._extractions.add(list(kept), pa.array(list(kept.values()), pa.large_string()))
            self._answers.remove(kept)
