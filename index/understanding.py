"""The tables `understanding`: what models said about a text, kept so that it is never bought twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import TypeAdapter

from .answers import Answers
from .keys import key
from .models.base import Embedder
from .records import matrix
from .recovery import settle
from .tables import connect, key_filter, version_files
from .types import Extraction, Key

TABLE = "understanding"
"""Holds extractions; vectors of length d are in a table of that name and -d, so both outlive a change of models."""
KEYS_PER_READ = 1_000

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
        self._tables = {
            "extraction": _open(folder, TABLE, "extraction", pa.large_string()),
            "vector": _open(folder, f"{TABLE}-{dimensions}", "vector", pa.list_(pa.float32(), dimensions)),
        }
        self._answers = Answers(folder / ANSWERS)

    def vectors(self, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
        """Vectors (n, d) of texts; only those not known yet are embedded, once each, in one call.

        Raises what the embedder raises.
        """
        keys = [key("text", embedder.fingerprint, text) for text in texts]
        known = self._known(keys, "vector")
        unknown = {k: text for k, text in zip(keys, texts, strict=True) if k not in known}
        if unknown:
            fresh = embedder.embed(list(unknown.values()))
            self._keep(
                list(unknown),
                "vector",
                pa.FixedSizeListArray.from_arrays(pa.array(fresh.reshape(-1)), embedder.dimensions),
            )
            known.update(zip(unknown, fresh, strict=True))
        return np.array([known[k] for k in keys], np.float32).reshape(len(keys), embedder.dimensions)

    def said(self, passages: Sequence[tuple[str, str]], extractor: str) -> list[Extraction | None]:
        """What the extractor of that fingerprint said about each (title, text); None where it was never asked."""
        keys = [key("extraction", extractor, title, text) for title, text in passages]
        known = self._known(keys, "extraction") | self._answers.find(keys)
        return [_EXTRACTION.validate_json(known[k]) if k in known else None for k in keys]

    def keep(self, passage: tuple[str, str], extractor: str, extraction: Extraction) -> None:
        """Keep what an extractor just said about a (title, text), whatever becomes of this process. Safe for threads.

        Raises OSError where it cannot be written.
        """
        self._answers.add(key("extraction", extractor, *passage), _EXTRACTION.dump_json(extraction).decode())

    def gather(self) -> None:
        """Bring what was kept since the last time into the table, all at once: it likes few large pieces."""
        if kept := self._answers.all():
            self._keep(list(kept), "extraction", pa.array(list(kept.values()), pa.large_string()))
            self._answers.remove(kept)

    def _known(self, keys: Sequence[Key], column: str) -> dict[Key, Any]:
        found: dict[Key, Any] = {}
        distinct = list(dict.fromkeys(keys))
        for start in range(0, len(distinct), KEYS_PER_READ):
            part = distinct[start : start + KEYS_PER_READ]
            rows = (
                self._tables[column]
                .to_lance()
                .to_table(columns=["key", column], filter=f"{column} IS NOT NULL AND {key_filter(part)}")
            )
            values = matrix(rows[column]) if column == "vector" else rows[column].to_pylist()
            found.update(zip(rows["key"].to_pylist(), values, strict=True))
        return found

    def _keep(self, keys: list[Key], column: str, values: pa.Array) -> None:
        if keys:
            self._tables[column].add(pa.table({"key": pa.array(keys, pa.binary(16)), column: values}))


def _open(folder: Path, name: str, column: str, values: pa.DataType) -> Any:
    settle(folder, name)
    if version_files(folder, name):
        return connect(folder).open_table(name)
    return connect(folder).create_table(
        name, schema=pa.schema([("key", pa.binary(16)), (column, values)]), exist_ok=True
    )
