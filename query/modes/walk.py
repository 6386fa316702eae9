"""The walk over entities and passages as modes use it: where it starts, how it reads the graph, how it is solved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import fsum
from typing import Literal

import numpy as np

from index.errors import BadRequest
from index.graph.diffusion import Solver, averaging, local_push, power_iteration
from index.graph.push import UNIT
from index.snapshot import Snapshot

from .base import Float64s, Int64s


@dataclass(frozen=True, slots=True)
class Spread:
    """Mass on the nodes of a snapshot after a walk; nodes are numbered as Snapshot says."""

    seeds: Int64s
    """Nodes where the walk starts, (s,)."""
    start: Float64s
    """π₀ of the seeds, (s,); sums to 1."""
    nodes: Int64s
    """Nodes with mass, (m,), ascending."""
    mass: Float64s
    """π of these nodes, (m,)."""
    error: float
    """Largest |π(v) − π̂(v)| / max(1, deg(v)) there can be."""

    def of(self, nodes: Int64s) -> Float64s:
        """π of any nodes (n,)."""
        if not len(self.nodes):
            return np.zeros(len(nodes))
        at = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return np.where(self.nodes[at] == nodes, self.mass[at], 0.0)


NOWHERE = Spread(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty(0), 0.0)
"""The walk of a question that lights up nothing."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Random walk with restart (CogitoRAG eq. 16); raises BadRequest for a restart or tolerance that makes no walk."""

    gamma: float = 0.5
    """Probability of returning to the seeds at each step."""
    orientation: Literal["walk", "averaging"] = "walk"
    """`walk` hands mass on (W = A D⁻¹); `averaging` takes the mean over neighbours (Wᵀ, eq. 16 as printed)."""
    solver: Literal["push", "exact"] = "push"
    epsilon: float = 1e-6
    """Push stops where every residual is at most ε·max(1, deg(v)): cheaper where larger."""

    def __post_init__(self) -> None:
        if not 0 < self.gamma <= 1 or not 0 < self.epsilon < 1:
            raise BadRequest(
                f"a walk with restart {self.gamma} and push tolerance {self.epsilon} never ends",
                hint="The restart is above 0 and at most 1, the tolerance between 0 and 1 (0.5 and 1e-6 are usual)",
            )

    def spread(self, snapshot: Snapshot, seeds: Int64s, weights: Float64s) -> Spread:
        """Walk from nodes (s,), each named once, with weights (s,) of any positive sum."""
        # fsum is exact, so π₀ does not depend on the order of the seeds.
        start = weights / fsum(weights)
        solve, scale = self._solver(snapshot), 1.0
        if self.orientation == "averaging":
            scale = float(start @ _degrees(snapshot, seeds))
            diffused = averaging(solve, snapshot.graph, seeds, start)
        else:
            diffused = solve(snapshot.graph, seeds, start)
        error = diffused.residual
        if self.solver == "exact":
            error *= scale * (1 - self.gamma) / self.gamma
        return Spread(seeds, start, diffused.nodes, diffused.mass, error)

    def _solver(self, snapshot: Snapshot) -> Solver:
        if self.solver == "exact":
            return partial(power_iteration, gamma=self.gamma)
        return partial(local_push, rank=snapshot.ranks, gamma=self.gamma, epsilon=self.epsilon)


def _degrees(snapshot: Snapshot, nodes: Int64s) -> Float64s:
    return np.maximum(snapshot.graph.totals[nodes] / UNIT, 1.0)
