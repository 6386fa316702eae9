"""Random walk with restart: where a walk that keeps returning to its seeds spends its time.

    π = (1−γ) W π + γ π₀ ,   W = A D⁻¹ ,   D = diag(A 1)

A is a symmetric node x node incidence whose weights are in units of 1/10,000; a node of degree 0 has a zero column, so a walk
that stands there ends. Two solvers share one contract: power iteration, which reads the whole graph and is exact, and local
push, whose cost depends on the answer and not on the graph. W hands mass on; `averaging` is the transposed walk, which takes
the mean over neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from .rows import Chains, SparseRows, merged

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

UNIT = 10_000
"""Weight of one plain edge: degrees are row sums divided by this."""


@dataclass(frozen=True, slots=True)
class Diffused:
    """A solution π̂ and how it was reached."""

    nodes: Int64s
    """Nodes with mass, (m,), in order of their number."""
    mass: Float64s
    """π̂ of these nodes, (m,), all above zero."""
    steps: int
    """Iterations of the power method; nodes pushed, repeats included, by local push."""
    edges: int
    """Entries of A that were read."""
    residual: float
    """Power iteration: the last change in the 1-norm as a share of the seeds' mass. Local push: max r(v) / max(1, deg(v))."""
    converged: bool
    """False where the iterations ran out before the tolerance was met: allow more of them, or a larger tolerance."""


Solver = Callable[[SparseRows, Int64s, Float64s], Diffused]
"""A walk from seeds (s,) with weights (s,): `functools.partial` of one of the solvers below."""


def power_iteration(
    graph: SparseRows,
    seeds: Int64s,
    weights: Float64s,
    *,
    gamma: float = 0.5,
    tolerance: float = 1e-12,
    max_iterations: int = 1_000,
) -> Diffused:
    """Iterate π ← (1−γ) W π + γ π₀ to its fixed point; ‖π − π̂‖₁ is then at most (1−γ)/γ times the residual.

    `weights` are at least 0 and need not sum to 1; a seed that comes twice counts twice.
    """
    start = _seeded(graph, seeds, weights)
    scale = float(start.sum())
    matrix = graph.to_csr(graph.n_rows).astype(np.float64)
    per_degree = np.divide(1 - gamma, graph.totals, out=np.zeros(graph.n_rows), where=graph.totals > 0)
    mass, change, step = start, scale, 0
    while change > tolerance * scale and step < max_iterations:
        spread = matrix @ (mass * per_degree) + gamma * start
        mass, change, step = spread, float(np.abs(spread - mass).sum()), step + 1
    nodes = np.flatnonzero(mass)
    residual = change / scale if scale else 0.0
    return Diffused(nodes, mass[nodes], step, step * matrix.nnz, residual, residual <= tolerance)


def local_push(
    graph: SparseRows,
    seeds: Int64s,
    weights: Float64s,
    *,
    rank: NDArray[np.uint64],
    gamma: float = 0.5,
    epsilon: float = 1e-6,
) -> Diffused:
    """Push residual mass r outwards until r(v) ≤ ε·max(1, deg(v)) everywhere (Andersen, Chung and Lang 2006, algorithm 3.2).

    Then 0 ≤ π(v) − π̂(v) ≤ ε·max(1, deg(v)), given that no degree lies between 0 and 1 (the walk keeps D fixed: W D 1 = D 1).
    It takes at most ‖π₀‖₁/(γε) edges, whatever the size of the graph. The example is a star: the centre 0 with leaves 1 to 3.

    >>> star = SparseRows.from_entries([0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0], [10_000] * 6, n_rows=4)
    >>> found = local_push(star, np.array([0]), np.array([1.0]), rank=np.arange(4, dtype=np.uint64), epsilon=1e-9)
    >>> found.nodes, found.mass.round(6)
    (array([0, 1, 2, 3]), array([0.666667, 0.111111, 0.111111, 0.111111]))

    `rank` (n_rows,) is a number per node that follows from its key, different for every node. Pushes go in rounds, each over a
    frontier sorted by rank and with the residuals it began with: so every floating sum has an order that the keys decide, and
    the same graph under another numbering, or with its deltas in the base, gives the same bits.
    """
    nodes, mass, pushes, edges, residual = _push(graph.chains, graph.totals, *_summed(seeds, weights), rank, gamma, epsilon)
    order = np.argsort(nodes)
    return Diffused(nodes[order], mass[order], pushes, edges, residual, True)


def averaging(solve: Solver, graph: SparseRows, seeds: Int64s, weights: Float64s) -> Diffused:
    """The walk with Wᵀ in place of W, every node taking the mean of its neighbours: D⁻¹ · solve(D π₀).

    With local push the error of every node is at most ε. A seed without edges keeps γ π₀.
    """
    walked = solve(graph, seeds, weights * _degrees(graph, seeds))
    return Diffused(
        walked.nodes,
        walked.mass / _degrees(graph, walked.nodes),
        walked.steps,
        walked.edges,
        walked.residual,
        walked.converged,
    )


def _degrees(graph: SparseRows, nodes: Int64s) -> Float64s:
    """Degrees (m,), with 1 in place of 0: a node without edges only scales itself."""
    totals = graph.totals[nodes]
    return np.where(totals > 0, totals, UNIT) / UNIT


def _summed(seeds: Int64s, weights: Float64s) -> tuple[Int64s, Float64s]:
    """Seeds named once, with the sum of their weights."""
    nodes, place = np.unique(np.asarray(seeds, dtype=np.int64), return_inverse=True)
    return nodes, np.bincount(place, weights=weights, minlength=len(nodes))


def _seeded(graph: SparseRows, seeds: Int64s, weights: Float64s) -> Float64s:
    start = np.zeros(graph.n_rows)
    nodes, amounts = _summed(seeds, weights)
    start[nodes] = amounts
    return start


class _Reached(NamedTuple):
    """The nodes reached so far, as an open hash table of 2^k places: cost and memory follow the walk, not the graph."""

    node: Int64s
    """-1 where the place is free."""
    residual: Float64s
    mass: Float64s


@compiled
def _table(places: int) -> _Reached:
    return _Reached(np.full(places, -1, np.int64), np.zeros(places), np.zeros(places))


@compiled
def _place(node: Int64s, wanted: int) -> int:
    """Where `wanted` is, or the free place where it belongs (Fibonacci hashing, linear probing)."""
    last = len(node) - 1
    place = np.int64((np.uint64(wanted) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & last
    while node[place] != wanted and node[place] >= 0:
        place = (place + 1) & last
    return place


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
def _push(
    chains: Chains,
    totals: Int64s,
    seeds: Int64s,
    amounts: Float64s,
    rank: NDArray[np.uint64],
    gamma: float,
    epsilon: float,
) -> tuple[Int64s, Float64s, int, int, float]:
    reached = _with_room(_table(1024), len(seeds))
    size = len(seeds)
    for seed, amount in zip(seeds, amounts):
        place = _place(reached.node, seed)
        reached.node[place], reached.residual[place] = seed, amount
    queue = [seed for seed, amount in zip(seeds, amounts) if amount > epsilon * max(1.0, totals[seed] / UNIT)]

    pushes = edges = 0
    while len(queue) > 0:
        frontier = np.array(queue)
        frontier = frontier[np.argsort(rank[frontier])]
        amounts = np.empty(len(frontier))
        for k, v in enumerate(frontier):
            place = _place(reached.node, v)
            amounts[k] = reached.residual[place]
            reached.mass[place] += gamma * amounts[k]
            reached.residual[place] = 0.0
        queue.clear()
        for v, amount in zip(frontier, amounts):
            pushes += 1
            if totals[v] == 0:
                continue
            cols, weights = merged(chains, v)
            edges += len(cols)
            reached = _with_room(reached, size + len(cols))
            share = (1 - gamma) * amount / totals[v]
            for u, weight in zip(cols, weights):
                place = _place(reached.node, u)
                if reached.node[place] < 0:
                    reached.node[place] = u
                    size += 1
                before = reached.residual[place]
                after = before + share * weight
                reached.residual[place] = after
                if after > epsilon:
                    bound = epsilon * max(1.0, totals[u] / UNIT)
                    if before <= bound < after:
                        queue.append(np.int64(u))

    worst = 0.0
    for place in np.flatnonzero(reached.residual):
        worst = max(worst, reached.residual[place] / max(1.0, totals[reached.node[place]] / UNIT))
    pushed = np.flatnonzero(reached.mass)
    return reached.node[pushed], reached.mass[pushed], pushes, edges, worst
