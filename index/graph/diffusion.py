"""Random walk with restart: where a walk that keeps returning to its seeds spends its time.

    π = (1−γ) W π + γ π₀ ,   W = A D⁻¹ ,   D = diag(A 1)

A is a symmetric node x node incidence whose weights are in units of 1/10,000; a node of degree 0 has a zero column, so
a walk that stands there ends. Two solvers share one contract: power iteration, which reads the whole graph and is
exact, and local push, whose cost depends on the answer and not on the graph. W hands mass on; `averaging` is the
transposed walk, which takes the mean over neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .push import UNIT, push
from .rows import SparseRows

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]


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
    """Power iteration: the last change ‖·‖₁ as a share of the seeds' mass. Local push: max r(v) / max(1, deg(v))."""
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
    """Iterate π ← (1−γ) W π + γ π₀ to its fixed point: ‖π − π̂‖₁ ≤ (1−γ)/γ · residual · ‖π₀‖₁.

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
    """Push residual mass r outwards until r(v) ≤ ε·max(1, deg(v)) everywhere.

    This is ApproximatePageRank of Andersen, Chung and Lang (2006) for any seeds and weighted edges. It ends with
    0 ≤ π(v) − π̂(v) ≤ ε·max(1, deg(v)), given that no degree lies between 0 and 1 (degrees are stationary: W D 1 =
    D 1), and pushes nodes with degrees of at most ‖π₀‖₁/(γε) in sum, whatever the size of the graph. `weights` are
    at least 0 and need not sum to 1; a seed that comes twice counts twice.

    `rank` (n_rows,) is a number per node that follows from its key, different for every node. Pushes go in rounds, each
    over a frontier sorted by rank and with the residuals it began with: so every floating sum has an order that the
    keys decide, and the same graph under another numbering, or with its deltas in the base, gives the same bits.

    A star with centre 0 and leaves 1 to 3:

    >>> star = SparseRows.from_entries([0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0], [10_000] * 6, n_rows=4)
    >>> found = local_push(star, np.array([0]), np.array([1.0]), rank=np.arange(4, dtype=np.uint64), epsilon=1e-9)
    >>> found.nodes, found.mass.round(6)
    (array([0, 1, 2, 3]), array([0.666667, 0.111111, 0.111111, 0.111111]))
    """
    start, amounts = _summed(seeds, weights)
    nodes, mass, pushes, edges, residual = push(graph.chains, graph.totals, start, amounts, rank, gamma, epsilon)
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
    amounts = np.zeros(len(nodes))
    np.add.at(amounts, place, weights)
    return nodes, amounts


def _seeded(graph: SparseRows, seeds: Int64s, weights: Float64s) -> Float64s:
    start = np.zeros(graph.n_rows)
    nodes, amounts = _summed(seeds, weights)
    start[nodes] = amounts
    return start
