"""Rows of the tables: their columns, and the way between a row and the words of types.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import keys
from .types import Document, Entity, Extraction, Fact, Key, Passage, Triple

TableName = Literal["documents", "passages", "entities", "facts", "sentences"]
TABLES: tuple[TableName, ...] = ("documents", "passages", "entities", "facts", "sentences")
"""The tables whose versions a manifest names."""

Vectors = NDArray[np.float32]

_KEY = pa.binary(16)
_TRIPLE = pa.struct([("head", pa.string()), ("relation", pa.string()), ("tail", pa.string())])


def schemas(dimensions: int, *, entity_vectors: bool) -> dict[TableName, pa.Schema]:
    """Columns of every pinned table; `vector` is (dimensions,) float32 of unit length, or zeros for an empty text.

    Entities have vectors only where alias edges are kept: nothing else reads them. Sentences are many, so theirs are
    float16; their texts are those of their passages.
    """
    vector = ("vector", pa.list_(pa.float32(), dimensions))
    return {
        "documents": pa.schema(
            [
                ("key", _KEY),
                ("id", pa.string()),
                ("version", pa.int64()),
                ("deleted", pa.bool_()),
                ("title", pa.string()),
                ("text", pa.large_string()),
                ("metadata", pa.string()),
                ("event_time", pa.int64()),
                ("accepted_at", pa.int64()),
                ("passages", pa.large_binary()),
            ]
        ),
        "passages": pa.schema(
            [
                ("key", _KEY),
                ("document", pa.string()),
                ("title", pa.string()),
                ("text", pa.large_string()),
                ("metadata", pa.string()),
                ("event_time", pa.int64()),
                ("memory", pa.large_string()),
                ("entities", pa.list_(pa.string())),
                ("triples", pa.list_(_TRIPLE)),
                ("degraded", pa.bool_()),
                ("about", pa.string()),
                vector,
            ]
        ),
        "entities": pa.schema(
            [("key", _KEY), ("norm", pa.string()), ("name", pa.string()), *([vector] if entity_vectors else [])]
        ),
        "facts": pa.schema(
            [
                ("key", _KEY),
                ("head", _KEY),
                ("tail", _KEY),
                ("head_norm", pa.string()),
                ("relation_norm", pa.string()),
                ("tail_norm", pa.string()),
                ("surface", pa.string()),
                vector,
            ]
        ),
        "sentences": pa.schema([("key", _KEY), ("vector", pa.list_(pa.float16(), dimensions))]),
    }


def documents(rows: Sequence[Document], schema: pa.Schema) -> pa.Table:
    return pa.table(
        {
            "key": [document_key(row.id) for row in rows],
            "id": [row.id for row in rows],
            "version": [row.version for row in rows],
            "deleted": [row.deleted for row in rows],
            "title": [row.title for row in rows],
            "text": [row.text for row in rows],
            "metadata": [row.metadata for row in rows],
            "event_time": [row.event_time for row in rows],
            "accepted_at": [row.accepted_at for row in rows],
            "passages": [b"".join(row.passages) for row in rows],
        },
        schema=schema,
    )


def document_key(id: str) -> Key:
    return keys.key("document", id)


def document(row: Mapping[str, Any]) -> Document:
    listed: bytes = row["passages"]
    return Document(
        row["id"], row["version"], row["deleted"], row["title"], row["text"], row["metadata"], row["event_time"],
        row["accepted_at"], tuple(listed[start : start + 16] for start in range(0, len(listed), 16)),
    )  # fmt: skip


def passages(rows: Sequence[Passage], vectors: Vectors, schema: pa.Schema) -> pa.Table:
    return pa.table(
        {
            "key": [row.key for row in rows],
            "document": [row.document for row in rows],
            "title": [row.title for row in rows],
            "text": [row.text for row in rows],
            "metadata": [row.metadata for row in rows],
            "event_time": [row.event_time for row in rows],
            "memory": [row.extraction.memory for row in rows],
            "entities": [list(row.extraction.entities) for row in rows],
            "triples": [[triple._asdict() for triple in row.extraction.triples] for row in rows],
            "degraded": [row.extraction.degraded for row in rows],
            "about": [row.about for row in rows],
            "vector": _matrix(vectors),
        },
        schema=schema,
    )


def passage(row: Mapping[str, Any]) -> Passage:
    triples = tuple(Triple(triple["head"], triple["relation"], triple["tail"]) for triple in row["triples"])
    extraction = Extraction(row["memory"], tuple(row["entities"]), triples, row["degraded"])
    return Passage(
        row["key"], row["document"], row["title"], row["text"], row["metadata"], row["event_time"], extraction,
        row["about"],
    )  # fmt: skip


def entities(rows: Sequence[Entity], vectors: Vectors | None, schema: pa.Schema) -> pa.Table:
    columns = {
        "key": [row.key for row in rows],
        "norm": [row.norm for row in rows],
        "name": [row.name for row in rows],
    }
    return pa.table(columns if vectors is None else {**columns, "vector": _matrix(vectors)}, schema=schema)


def entity(row: Mapping[str, Any]) -> Entity:
    return Entity(row["key"], row["norm"], row["name"])


def facts(rows: Sequence[Fact], vectors: Vectors, schema: pa.Schema) -> pa.Table:
    return pa.table(
        {
            "key": [row.key for row in rows],
            "head": [row.head for row in rows],
            "tail": [row.tail for row in rows],
            "head_norm": [row.norms[0] for row in rows],
            "relation_norm": [row.norms[1] for row in rows],
            "tail_norm": [row.norms[2] for row in rows],
            "surface": [row.surface for row in rows],
            "vector": _matrix(vectors),
        },
        schema=schema,
    )


def fact(row: Mapping[str, Any]) -> Fact:
    norms = row["head_norm"], row["relation_norm"], row["tail_norm"]
    return Fact(row["key"], row["head"], row["tail"], norms, row["surface"])


def sentences(keys: Sequence[Key], vectors: Vectors, schema: pa.Schema) -> pa.Table:
    return pa.table({"key": list(keys), "vector": _matrix(vectors.astype(np.float16))}, schema=schema)


def content(row: Passage | Entity | Fact) -> Key:
    """Address of a row's whole content (without its vector, which follows from it): 16 bytes."""
    return blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def matrix(column: pa.ChunkedArray) -> NDArray[np.floating[Any]]:
    """A vector column as one array (n, d) of its own precision."""
    width = column.type.list_size
    chunks = [chunk.flatten().to_numpy(zero_copy_only=False).reshape(-1, width) for chunk in column.chunks]
    return np.concatenate(chunks) if chunks else np.empty((0, width), column.type.value_type.to_pandas_dtype())


def _matrix(vectors: NDArray[np.floating[Any]]) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
