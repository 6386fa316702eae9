"""An append-only table of values under content addresses, looked up in time that does not grow with the table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import fragments
from .errors import StoreError
from .records import matrix
from .recovery import settle
from .tables import open_dataset, version_files
from .types import Key

FOLD_AFTER = 4096
"""Rows that are looked up one by one before they join the sorted places."""
COMPACT_AFTER = 64
"""Additions between two compactions."""
SUPERSEDED_SECONDS = 600.0
"""How long a version that is not the newest stays readable: longer than any process takes over one look."""
ATTEMPTS = 3
"""Looks at a table whose files were rewritten and removed in the meantime."""


class Kept:
    """A Lance table of two columns, `key` and one more, whose keys are in memory: 16 bytes a row.

    Any number of processes append to it, look things up and compact it at once. Rows are found by their place, from 8
    bytes of the key, and told by the whole key; what other processes did is seen when something is missed. Of two keys
    that begin alike (one of 2^64 pairs does) one may be missed. One thread uses it.
    """

    def __init__(self, folder: Path, name: str, column: str, values: pa.DataType) -> None:
        """Opens or makes the table; one that a crash has torn goes back to its newest version that holds.

        Nobody else may open or compact it meanwhile; others may append. Raises StoreError where it cannot be opened.
        """
        self._folder, self._name, self._column = folder, name, column
        self._recent: dict[Key, int] = {}
        self._heads = np.zeros(0, np.uint64)
        """The first 8 bytes of every other key, sorted."""
        self._places = np.zeros(0, np.uint64)
        """Where their rows are: fragment times 2^32 plus the row in it."""
        self._seen: set[int] = set()
        """The fragments whose keys are in memory."""
        self._rows: Any = None
        """The table at the version that was looked at last."""
        self.due = False
        """Whether a compaction was due when something was added last."""
        with self._explained():
            settle(folder, name)
            if not version_files(folder, name):
                schema = pa.schema([("key", pa.binary(16)), (column, values)])
                lance.write_dataset(schema.empty_table(), str(folder / f"{name}.lance"), mode="create")
            self._follow()

    def find(self, keys: Sequence[Key]) -> dict[Key, Any]:
        """The values of those keys that are there: rows of numbers (d,) or Python values.

        Raises StoreError where the table cannot be read.
        """
        wanted = set(keys)
        with self._explained():
            found = self._read(wanted)
            if len(found) < len(wanted) and self._follow():
                found |= self._read(wanted - found.keys())
        return found

    def add(self, keys: Sequence[Key], values: pa.Array) -> None:
        """Append values under their keys; a key that is there already is there twice, which does no harm.

        Raises StoreError where they cannot be written.
        """
        if not keys:
            return
        with self._explained():
            # The newest, since conflicts are looked for among all later versions, and those must still be there.
            newest = open_dataset(self._folder, self._name)
            newest.insert(pa.table({"key": pa.array(keys, pa.binary(16)), self._column: values}))
            self.due = fragments.small(newest) > COMPACT_AFTER

    def compact(self) -> None:
        """Merge small pieces, and remove the versions that were superseded long ago; only one process at a time may.

        Those who still hold one of these versions notice, and look again. Raises StoreError.
        """
        with self._explained():
            rows = open_dataset(self._folder, self._name)
            fragments.compact(rows)
            since = time.time() - SUPERSEDED_SECONDS
            versions = sorted(version_files(self._folder, self._name).items())
            old = [version for (version, _), (_, next) in pairwise(versions) if next.stat().st_mtime < since]
            if old:
                rows.cleanup_old_versions(versions=old, error_if_tagged_old_versions=False)

    def _follow(self) -> bool:
        """Take in what the table has become; False where nothing changed since the last time."""
        if self._rows is not None and self._rows.latest_version == self._rows.version:
            return False
        rows = open_dataset(self._folder, self._name)
        pieces = {fragment.fragment_id: fragment for fragment in rows.get_fragments()}
        fresh = [piece for number, piece in pieces.items() if number not in self._seen]
        if fresh:
            known = rows.scanner(columns=["key"], fragments=fresh, with_row_address=True).to_table()
        # All at once: Lance panics where it is asked for a row of a fragment that is not there.
        self._rows = rows
        if gone := self._seen.difference(pieces):
            self._fold()
            left = ~np.isin(self._places >> np.uint64(32), np.array(sorted(gone), np.uint64))
            self._heads, self._places = self._heads[left], self._places[left]
        if fresh:
            self._recent.update(zip(known["key"].to_pylist(), known["_rowaddr"].to_pylist(), strict=True))
        self._seen = set(pieces)
        if len(self._recent) >= FOLD_AFTER:
            self._fold()
        return True

    def _fold(self) -> None:
        """Join the recent keys and their places to the sorted ones."""
        heads = np.concatenate([self._heads, _heads(list(self._recent))])
        places = np.concatenate([self._places, np.array(list(self._recent.values()), np.uint64)])
        order = np.argsort(heads, kind="stable")
        self._heads, self._places = heads[order], places[order]
        self._recent = {}

    def _places_of(self, wanted: set[Key]) -> list[int]:
        """Where the rows of these keys should be; those that are nowhere are left out."""
        keys = list(wanted)
        heads = _heads(keys)
        at = np.searchsorted(self._heads, heads)
        there = at < len(self._heads)
        there[there] = self._heads[at[there]] == heads[there]
        places = {key: int(self._places[place]) for key, place, found in zip(keys, at, there, strict=True) if found}
        return list((places | {key: self._recent[key] for key in keys if key in self._recent}).values())

    def _read(self, wanted: set[Key]) -> dict[Key, Any]:
        """The values of those keys whose places are known."""
        for attempt in range(ATTEMPTS):
            places = self._places_of(wanted)
            if not places:
                return {}
            try:
                # Lance has no public way to read rows by address.
                rows = self._rows._take_rows(places, columns=["key", self._column])
                break
            except (OSError, RuntimeError, ValueError):
                # Another process may have compacted the table and removed this version.
                if attempt == ATTEMPTS - 1 or not self._follow():
                    raise
        values = rows[self._column]
        listed = matrix(values) if pa.types.is_fixed_size_list(values.type) else values.to_pylist()
        told = zip(rows["key"].to_pylist(), listed, strict=True)
        return {key: value for key, value in told if key in wanted and value is not None}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Lance has no errors of its own."""
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:
            raise StoreError(
                f"table {self._name} in {self._folder} cannot be used: {error}",
                hint="see whether the folder stands, may be written, and the disk has room",
            ) from error


def _heads(keys: Sequence[Key]) -> NDArray[np.uint64]:
    """The first 8 bytes of each key as a number."""
    return np.frombuffer(b"".join(key[:8] for key in keys), ">u8").astype(np.uint64)
