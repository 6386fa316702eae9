"""An append-only table of values under content addresses, looked up in time that does not grow with the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .records import matrix
from .recovery import settle
from .tables import connect, version_files
from .types import Key

FOLD_AFTER = 4096
"""Additions that are looked up one by one before they join the sorted places."""


class Kept:
    """A LanceDB table of two columns, `key` and one more, whose keys are in memory: 16 bytes a row.

    Rows are found by their place, from 8 bytes of the key, and told by the whole key. So rows of another writer, which
    move places, do no harm: they are found from the next time on that something is missed. Of two keys that begin alike
    (one of 2^64 pairs does) one may be missed. One thread uses it.
    """

    def __init__(self, folder: Path, name: str, column: str, values: pa.DataType) -> None:
        """Opens or makes the table; one that a crash has torn goes back to its newest version that holds."""
        settle(folder, name)
        if version_files(folder, name):
            self._table: Any = connect(folder).open_table(name)
        else:
            schema = pa.schema([("key", pa.binary(16)), (column, values)])
            self._table = connect(folder).create_table(name, schema=schema, exist_ok=True)
        self._column = column
        self._recent: dict[Key, int] = {}
        self._load()

    def find(self, keys: Sequence[Key]) -> dict[Key, Any]:
        """The values of those keys that are there: rows of numbers (d,) or Python values."""
        places = self._places_of(keys)
        found = self._read(places)
        if len(found) < len(places):
            self._load()
            found = self._read(self._places_of(keys))
        return found

    def add(self, keys: Sequence[Key], values: pa.Array) -> None:
        """Append values under their keys; a key that is there already is there twice, which does no harm."""
        if not keys:
            return
        self._table.add(pa.table({"key": pa.array(keys, pa.binary(16)), self._column: values}))
        self._rows = self._table.to_lance()
        end = self._rows.count_rows()
        self._recent.update(zip(keys, range(end - len(keys), end), strict=True))
        if len(self._recent) >= FOLD_AFTER:
            self._sort(_heads(list(self._recent)), np.array(list(self._recent.values()), np.int64))
            self._recent = {}

    def _load(self) -> None:
        self._rows = self._table.to_lance()
        self._recent = {}
        self._sorted = np.zeros(0, np.uint64)
        self._places = np.zeros(0, np.int64)
        heads = _heads(self._rows.to_table(columns=["key"])["key"].to_pylist())
        self._sort(heads, np.arange(len(heads)))

    def _sort(self, heads: NDArray[np.uint64], places: NDArray[np.int64]) -> None:
        """Join more keys and their places to the sorted ones."""
        heads, places = np.concatenate([self._sorted, heads]), np.concatenate([self._places, places])
        order = np.argsort(heads, kind="stable")
        self._sorted, self._places = heads[order], places[order]

    def _places_of(self, keys: Sequence[Key]) -> dict[Key, int]:
        """Where the rows of these keys should be; those that are nowhere are left out."""
        wanted = list(dict.fromkeys(keys))
        heads = _heads(wanted)
        at = np.searchsorted(self._sorted, heads)
        there = at < len(self._sorted)
        there[there] = self._sorted[at[there]] == heads[there]
        found = {
            key: int(self._places[place]) for key, place, is_there in zip(wanted, at, there, strict=True) if is_there
        }
        return found | {key: self._recent[key] for key in wanted if key in self._recent}

    def _read(self, places: dict[Key, int]) -> dict[Key, Any]:
        if not places or max(places.values()) >= self._rows.count_rows():
            return {}
        rows = self._rows.take(list(places.values()), columns=["key", self._column])
        values = rows[self._column]
        listed = matrix(values) if pa.types.is_fixed_size_list(values.type) else values.to_pylist()
        told = zip(places, rows["key"].to_pylist(), listed, strict=True)
        return {key: value for key, stored, value in told if key == stored and value is not None}


def _heads(keys: Sequence[Key]) -> NDArray[np.uint64]:
    """The first 8 bytes of each key as a number."""
    return np.frombuffer(b"".join(key[:8] for key in keys), ">u8").astype(np.uint64)
