"""The kernel of local push: rounds over a frontier, with the nodes reached so far in a hash table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from .chains import Chains, Int32s, Int64s, merged

Float64s = NDArray[np.float64]

UNIT = 10_000
"""Weight of one plain edge: degrees are row sums divided by this."""

_FIRST_PLACES = 2**16
_AHEAD = 64
"""Rows that are fetched together; more of them would push each other out of the cache."""


class _Reached(NamedTuple):
    """The nodes reached so far, as an open hash table of 2^k places: cost and memory follow the walk, not the graph."""

    node: Int32s
    """-1 where the place is free."""
    residual: Float64s
    mass: Float64s


@compiled
def _table(places: int) -> _Reached:
    return _Reached(np.full(places, -1, np.int32), np.zeros(places), np.zeros(places))


@compiled
def _place(node: Int32s, wanted: int) -> int:
    """Where `wanted` is, or the free place where it belongs (Fibonacci hashing, linear probing)."""
    last = len(node) - 1
    place = np.int64((np.uint64(wanted) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & last
    while node[place] != wanted and node[place] >= 0:
        place = (place + 1) & last
    return int(place)


@compiled
def _with_room(reached: _Reached, wanted: int) -> _Reached:
    """A table at most half full once it holds `wanted` nodes."""
    if 2 * wanted <= len(reached.node):
        return reached
    places = len(reached.node)
    while places < 2 * wanted:
        places *= 2
    grown = _table(places)
    for old in np.flatnonzero(reached.node >= 0):
        place = _place(grown.node, reached.node[old])
        grown.node[place] = reached.node[old]
        grown.residual[place] = reached.residual[old]
        grown.mass[place] = reached.mass[old]
    return grown


@compiled
def _look_ahead(chains: Chains, totals: Int64s, nodes: Int64s) -> int:
    """Touch where the rows of `nodes` begin and end.

    Each row is a few cache lines somewhere in gigabytes. Asked for together, they come in side by side; asked for when
    their turn comes, one after the other, which takes a third longer in all. The sum keeps the reads from being
    removed.
    """
    touched = np.int64(0)
    for v in nodes:
        if v + 1 < len(chains.ptr) and chains.ptr[v] < chains.ptr[v + 1]:
            start, stop = chains.ptr[v], chains.ptr[v + 1]
            touched += chains.col[start] + chains.weight[start] + chains.weight[stop - 1] + totals[v] + chains.head[v]
    return int(touched)


@compiled
def push(
    chains: Chains,
    totals: Int64s,
    seeds: Int64s,
    amounts: Float64s,
    rank: NDArray[np.uint64],
    gamma: float,
    epsilon: float,
) -> tuple[Int64s, Float64s, int, int, float]:
    """Nodes with mass, their mass, pushes, entries read and max r(v) / max(1, deg(v)); `seeds` (s,) are distinct."""
    reached = _with_room(_table(_FIRST_PLACES), len(seeds))
    size = len(seeds)
    for k in range(len(seeds)):
        place = _place(reached.node, seeds[k])
        reached.node[place] = seeds[k]
        reached.residual[place] = amounts[k]
    frontier = seeds[amounts > epsilon * np.maximum(1.0, totals[seeds] / UNIT)]

    pushes, edges = 0, 0
    sink = np.zeros(1, np.int64)
    while len(frontier) > 0:
        # Take all residuals before any is handed on: what a node hands on may not depend on its turn in the round.
        frontier = frontier[np.argsort(rank[frontier])]
        taken = np.empty(len(frontier))
        for k in range(len(frontier)):
            place = _place(reached.node, frontier[k])
            taken[k] = reached.residual[place]
            reached.mass[place] += gamma * taken[k]
            reached.residual[place] = 0.0
        pushes += len(frontier)

        queue: list[np.int64] = []
        for k in range(len(frontier)):
            if k % _AHEAD == 0:
                sink[0] += _look_ahead(chains, totals, frontier[k : k + _AHEAD])
            v = frontier[k]
            if totals[v] == 0:
                continue
            if chains.head[v] < 0 and v + 1 < len(chains.ptr):
                start, stop = chains.ptr[v], chains.ptr[v + 1]
                cols, weights = chains.col[start:stop], chains.weight[start:stop]
            else:
                cols, weights = merged(chains, v)
            edges += len(cols)
            reached = _with_room(reached, size + len(cols))
            share = (1 - gamma) * taken[k] / totals[v]
            node, residual = reached.node, reached.residual
            for j in range(len(cols)):
                place = _place(node, cols[j])
                if node[place] < 0:
                    node[place] = cols[j]
                    size += 1
                before = residual[place]
                after = before + share * weights[j]
                residual[place] = after
                # No bound lies below epsilon: most entries are done without a look at the degree.
                if after > epsilon and before <= epsilon * max(1.0, totals[cols[j]] / UNIT) < after:
                    queue.append(np.int64(cols[j]))
        frontier = np.array(queue)

    worst = 0.0
    for left in np.flatnonzero(reached.residual):
        if reached.residual[left] > worst:
            worst = max(worst, reached.residual[left] / max(1.0, totals[reached.node[left]] / UNIT))
    pushed = np.flatnonzero(reached.mass)
    return reached.node[pushed].astype(np.int64), reached.mass[pushed], pushes, edges, worst
