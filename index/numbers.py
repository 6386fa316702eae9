"""Dense numbers for keys: private to one reader, handed out as they come, never reused and never compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .graph.incidence import Incidence, Words
from .keys import whole
from .types import Key


class Numbers:
    """A bijection between keys and 0, 1, 2, … that only grows, so successive snapshots share it.

    One thread adds; any number of threads look up. A snapshot knows how many numbers were given when it was made
    and ignores later ones.
    """

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self._number: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, key: Key) -> int | None:
        return self._number.get(key)

    def assign(self, high: Words, low: Words) -> NDArray[np.int64]:
        """Numbers (m,) of keys given as halves (m,); unseen keys get the next ones."""
        # A key comes once for each of its entries. Those that lie together when sorted by half of it are looked up
        # once; where two keys share that half, one is looked up more often, and nothing else.
        order = np.argsort(high)
        high, low = high[order], low[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        first = np.flatnonzero(new)
        numbers = np.fromiter(map(self._assign, whole(high[first], low[first])), np.int64, len(first))
        result = np.empty(len(order), np.int64)
        result[order] = np.repeat(numbers, np.diff(first, append=len(order)))
        return result

    def _assign(self, key: Key) -> int:
        number = self._number.get(key)
        if number is None:
            number = len(self.keys)
            # The key first: whoever finds a number must find its key.
            self.keys.append(key)
            self._number[key] = number
        return number

    def of(self, keys: Sequence[Key]) -> NDArray[np.int64]:
        """Numbers (m,) of keys that all have one."""
        return np.fromiter((self._number[key] for key in keys), np.int64, len(keys))


def numbered(
    entries: Incidence, rows: Numbers, cols: Numbers
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers, column numbers and weights (m,) of entries; unseen keys get the next numbers."""
    return (
        rows.assign(entries.row_high, entries.row_low),
        cols.assign(entries.col_high, entries.col_low),
        entries.weight,
    )


class Grown:
    """An append-only array whose versions share one buffer: a version sees its own length and nothing later."""

    def __init__(self, width: int, dtype: type[np.generic]) -> None:
        self._buffer = np.zeros((1024, width), dtype)

    def fill(self, rows: NDArray[np.int64], values: NDArray[np.generic]) -> None:
        """Write rows that no version has seen yet, or the value they already have."""
        self._room(int(rows.max(initial=-1)) + 1)
        self._buffer[rows] = values

    def view(self, length: int) -> NDArray[np.generic]:
        """The first `length` rows (length, width)."""
        self._room(length)
        return self._buffer[:length]

    def _room(self, length: int) -> None:
        if length > len(self._buffer):
            room = np.zeros((max(length, 2 * len(self._buffer)), self._buffer.shape[1]), self._buffer.dtype)
            room[: len(self._buffer)] = self._buffer
            self._buffer = room
