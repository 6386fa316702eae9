"""Content addresses: the first 16 bytes of blake2b over length-prefixed UTF-8 fields behind a type tag."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .types import Key

Tag = Literal[
    "document", "passage", "entity", "fact", "surface", "term", "row", "text", "extraction",
    "sentence", "name", "word", "session", "turn",
]  # fmt: skip


def key(tag: Tag, *fields: str) -> Key:
    """Address of `fields` under `tag`.

    Every field is preceded by its length in bytes, so ("ab", "c") and ("a", "bc") differ; the tag keeps kinds apart.
    """
    parts = [tag.encode(), b"\0"]
    for value in fields:
        data = value.encode()
        parts.append(len(data).to_bytes(8, "big"))
        parts.append(data)
    return blake2b(b"".join(parts), digest_size=16).digest()


def passage_key(namespace: str, document: str, text: str, occurrence: int) -> Key:
    """`occurrence` counts equal texts within one document from 0, so that twins get two keys."""
    return key("passage", namespace, document, text, str(occurrence))


def entity_key(norm: str) -> Key:
    return key("entity", norm)


def fact_key(head: str, relation: str, tail: str) -> Key:
    """The three fields are normal forms (text.norm)."""
    return key("fact", head, relation, tail)


def term_key(term: str) -> Key:
    return key("term", term)


def halves(keys: Iterable[Key]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Keys as two native uint64 arrays (n,), high and low half; comparing (high, low) compares the bytes."""
    pairs = np.frombuffer(b"".join(keys), dtype=">u8").reshape(-1, 2)
    return pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.uint64)


def whole(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> list[Key]:
    """The inverse of `halves`."""
    pairs = np.empty((len(high), 2), dtype=">u8")
    pairs[:, 0], pairs[:, 1] = high, low
    data = pairs.tobytes()
    return [data[start : start + 16] for start in range(0, len(data), 16)]
