"""Chains: the plain arrays behind sparse rows, and the kernels that append to them, follow them and merge them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]


class Chains(NamedTuple):
    """The arrays a kernel walks: row i is `col, weight[ptr[i]:ptr[i+1]]` plus the arena entries from head[i] to -1.

    The base slice is sorted by column and names no column twice; the chain is in no order and may repeat or cancel
    anything. `ptr` may cover fewer rows than `head`: the later rows have a chain only.
    """

    ptr: Int64s
    col: Int32s
    weight: Int64s
    head: Int32s
    arena_col: Int32s
    arena_weight: Int64s
    arena_next: Int32s


@compiled
def append(
    rows: Int64s,
    cols: Int64s,
    weights: Int64s,
    head: Int32s,
    totals: Int64s,
    arena_col: Int32s,
    arena_weight: Int64s,
    arena_next: Int32s,
    used: int,
) -> None:
    for entry in range(len(rows)):
        row, place = rows[entry], used + entry
        arena_col[place] = cols[entry]
        arena_weight[place] = weights[entry]
        arena_next[place] = head[row]
        head[row] = place
        totals[row] += weights[entry]


@compiled
def followed(chains: Chains, first: int, stop: int) -> tuple[Int64s, Int64s]:
    """Row and arena place, from `first` up to `stop`, of every entry that this version's heads lead to."""
    rows, places = np.empty(stop - first, np.int64), np.empty(stop - first, np.int64)
    found = 0
    for row in range(len(chains.head)):
        place = chains.head[row]
        # A chain leads from later places to earlier ones.
        while place >= first:
            rows[found], places[found] = row, place
            found += 1
            place = chains.arena_next[place]
    return rows[:found], places[:found]


@compiled
def merged(chains: Chains, row: int) -> tuple[Int32s, Int64s]:
    """Merge the sorted base slice with the chain, sorted here, in O(base + chain log chain)."""
    start, stop = (chains.ptr[row], chains.ptr[row + 1]) if row + 1 < len(chains.ptr) else (0, 0)
    length = 0
    place = chains.head[row]
    while place >= 0:
        length += 1
        place = chains.arena_next[place]
    if length == 0:
        return chains.col[start:stop].copy(), chains.weight[start:stop].copy()
    late = np.empty(length, np.int64)
    place = chains.head[row]
    for at in range(length):
        late[at] = place
        place = chains.arena_next[place]
    late = late[np.argsort(chains.arena_col[late])]

    cols, weights = np.empty(stop - start + length, np.int32), np.empty(stop - start + length, np.int64)
    size, base, at = 0, start, 0
    while base < stop or at < length:
        if base < stop and (at == length or chains.col[base] <= chains.arena_col[late[at]]):
            column, weight = chains.col[base], chains.weight[base]
            base += 1
        else:
            column, weight = chains.arena_col[late[at]], chains.arena_weight[late[at]]
            at += 1
        while at < length and chains.arena_col[late[at]] == column:
            weight += chains.arena_weight[late[at]]
            at += 1
        if weight != 0:
            cols[size], weights[size] = column, weight
            size += 1
    return cols[:size], weights[:size]


@compiled
def gathered(chains: Chains, rows: Int64s) -> tuple[Int64s, Int32s, Int64s]:
    """Many rows (n,) at once: ptr (n + 1,), columns and weights; row rows[i] is `cols, weights[ptr[i]:ptr[i+1]]`."""
    ptr = np.zeros(len(rows) + 1, np.int64)
    found = [merged(chains, row) for row in rows]
    for at in range(len(rows)):
        ptr[at + 1] = ptr[at] + len(found[at][0])
    cols, weights = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.int64)
    for at in range(len(rows)):
        cols[ptr[at] : ptr[at + 1]] = found[at][0]
        weights[ptr[at] : ptr[at + 1]] = found[at][1]
    return ptr, cols, weights


@compiled
def consolidated(chains: Chains, n_delta: int) -> tuple[Int64s, Int32s, Int64s]:
    """Every row with its chain merged into it, in CSR form: ptr[n+1], col[nnz], weight[nnz]."""
    most = len(chains.col) + n_delta
    ptr, col, weight = np.zeros(len(chains.head) + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
    size = 0
    for row in range(len(chains.head)):
        if chains.head[row] >= 0:
            cols, weights = merged(chains, row)
        else:
            start, stop = (chains.ptr[row], chains.ptr[row + 1]) if row + 1 < len(chains.ptr) else (0, 0)
            cols, weights = chains.col[start:stop], chains.weight[start:stop]
        for at in range(len(cols)):
            col[size], weight[size] = cols[at], weights[at]
            size += 1
        ptr[row + 1] = size
    return ptr, col[:size], weight[:size]
