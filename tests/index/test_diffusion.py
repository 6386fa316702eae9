"""Local push stays within its bound of the fixed point, whatever the numbering and the history of the graph."""

from __future__ import annotations

import doctest
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from index.graph import diffusion
from index.graph.diffusion import Diffused, averaging, local_push, power_iteration
from index.graph.push import UNIT
from index.graph.rows import SparseRows

Pairs = list[tuple[int, int, int]]
N = 12
pairs = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.integers(1, 3)), max_size=25)
seeds = st.dictionaries(st.integers(0, N - 1), st.floats(0, 1), max_size=4)
gammas = st.floats(0.1, 0.9)
RANK = np.random.default_rng(7_919).permutation(N).astype(np.uint64)


def entries(edges: Pairs, sign: int = 1) -> tuple[list[int], list[int], list[int]]:
    """Both directions of undirected edges; a self-loop counts once."""
    both = edges + [(v, u, w) for u, v, w in edges if u != v]
    return [u for u, _, _ in both], [v for _, v, _ in both], [sign * UNIT * w for _, _, w in both]


def symmetric(edges: Pairs) -> SparseRows:
    return SparseRows.from_entries(*entries(edges), N)


def start(weights: dict[int, float]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return np.array(list(weights), np.int64), np.array(list(weights.values()), np.float64)


def dense(found: Diffused) -> NDArray[np.float64]:
    whole = np.zeros(N)
    whole[found.nodes] = found.mass
    return whole


def solved(edges: Pairs, weights: dict[int, float], gamma: float, transposed: bool = False) -> NDArray[np.float64]:
    """(I − (1−γ)W) π = γ π₀ by elimination."""
    a = np.zeros((N, N))
    for u, v, w in edges:
        a[u, v] += w
        if u != v:
            a[v, u] += w
    degrees = a.sum(axis=0)
    walk: NDArray[np.float64] = a / np.where(degrees > 0, degrees, 1)
    pi0 = np.zeros(N)
    for node, weight in weights.items():
        pi0[node] = weight
    step = walk.T if transposed else walk
    return np.linalg.solve(np.eye(N) - (1 - gamma) * step, gamma * pi0).astype(np.float64)


@settings(deadline=None)
@given(pairs, seeds, gammas)
def test_power_iteration_reaches_the_solution_of_the_linear_system(
    edges: Pairs, weights: dict[int, float], gamma: float
) -> None:
    found = power_iteration(symmetric(edges), *start(weights), gamma=gamma)
    assert found.converged
    assert np.allclose(dense(found), solved(edges, weights, gamma), rtol=0, atol=1e-10)


@settings(deadline=None)
@given(pairs, seeds, gammas, st.sampled_from([1e-2, 1e-4, 1e-7]))
def test_local_push_stays_within_its_bound(
    edges: Pairs, weights: dict[int, float], gamma: float, epsilon: float
) -> None:
    graph = symmetric(edges)
    found = local_push(graph, *start(weights), rank=RANK, gamma=gamma, epsilon=epsilon)
    error = solved(edges, weights, gamma) - dense(found)
    assert found.residual <= epsilon
    assert np.all(error >= -1e-12)
    assert np.all(error <= epsilon * np.maximum(1, graph.totals / UNIT) + 1e-12)
    assert np.all(found.mass > 0)
    assert np.all(np.diff(found.nodes) > 0)


@settings(deadline=None)
@given(pairs, seeds, st.permutations(range(N)))
def test_another_numbering_of_the_nodes_gives_the_same_bits(
    edges: Pairs, weights: dict[int, float], numbering: list[int]
) -> None:
    new = np.array(numbering)
    rank = np.empty(N, np.uint64)
    rank[new] = RANK
    renamed = symmetric([(int(new[u]), int(new[v]), w) for u, v, w in edges])
    plain = local_push(symmetric(edges), *start(weights), rank=RANK)
    nodes, amounts = start(weights)
    other = local_push(renamed, new[nodes][::-1], amounts[::-1], rank=rank)
    assert dense(other)[new].tobytes() == dense(plain).tobytes()
    assert (other.steps, other.edges, other.residual) == (plain.steps, plain.edges, plain.residual)


@settings(deadline=None)
@given(pairs, pairs, pairs, seeds)
def test_deltas_and_a_fresh_base_give_the_same_bits(
    kept: Pairs, gone: Pairs, late: Pairs, weights: dict[int, float]
) -> None:
    chained = symmetric(kept + gone).extend(*entries(late), N).extend(*entries(gone, sign=-1), N)
    fresh = symmetric(kept + late)
    for graph in (chained, chained.renewed()):
        ours, theirs = (local_push(g, *start(weights), rank=RANK, epsilon=1e-8) for g in (graph, fresh))
        assert dense(ours).tobytes() == dense(theirs).tobytes()
        assert (ours.steps, ours.edges) == (theirs.steps, theirs.edges)
    assert np.allclose(
        dense(power_iteration(chained, *start(weights))), dense(power_iteration(fresh, *start(weights))), atol=1e-12
    )


@settings(deadline=None)
@given(pairs, seeds, gammas)
def test_averaging_is_the_transposed_walk(edges: Pairs, weights: dict[int, float], gamma: float) -> None:
    graph, reference = symmetric(edges), solved(edges, weights, gamma, transposed=True)
    exact = averaging(partial(power_iteration, gamma=gamma), graph, *start(weights))
    assert np.allclose(dense(exact), reference, rtol=0, atol=1e-10)
    pushed = averaging(partial(local_push, rank=RANK, gamma=gamma, epsilon=1e-3), graph, *start(weights))
    assert np.all(np.abs(reference - dense(pushed)) <= 1e-3 + 1e-12)


@pytest.mark.parametrize("solve", [power_iteration, partial(local_push, rank=RANK)])
class TestBothSolvers:
    def test_no_seeds_give_no_mass(self, solve: diffusion.Solver) -> None:
        found = solve(symmetric([(0, 1, 1)]), *start({}))
        assert (len(found.nodes), found.residual, found.converged) == (0, 0.0, True)

    def test_a_seed_without_edges_keeps_its_restart_only(self, solve: diffusion.Solver) -> None:
        found = solve(symmetric([(0, 1, 1)]), *start({5: 0.8}))
        assert (found.nodes.tolist(), found.mass.tolist()) == ([5], [0.4])

    def test_a_self_loop_holds_all_mass(self, solve: diffusion.Solver) -> None:
        found = solve(symmetric([(3, 3, 1)]), *start({3: 1.0}))
        assert found.nodes.tolist() == [3]
        assert found.mass[0] == pytest.approx(1, abs=2e-6)

    def test_a_seed_that_comes_twice_counts_twice(self, solve: diffusion.Solver) -> None:
        twice = solve(symmetric([(0, 1, 1)]), np.array([0, 0]), np.array([0.25, 0.75]))
        assert dense(twice).tobytes() == dense(solve(symmetric([(0, 1, 1)]), *start({0: 1.0}))).tobytes()

    def test_a_removed_neighbour_is_not_reached(self, solve: diffusion.Solver) -> None:
        graph = symmetric([(0, 1, 1), (1, 2, 1)]).extend(*entries([(1, 2, 1)], sign=-1), N)
        assert solve(graph, *start({0: 1.0})).nodes.tolist() == [0, 1]


def test_too_few_iterations_are_reported() -> None:
    found = power_iteration(symmetric([(0, 1, 1)]), *start({0: 1.0}), max_iterations=3)
    assert (found.steps, found.converged) == (3, False)
    assert found.residual > 1e-12


def test_a_hub_with_more_neighbours_than_the_first_table_has_places() -> None:
    n = 20_001
    leaves, hub = np.arange(1, n), np.zeros(n - 1, np.int64)
    star = SparseRows.from_entries(np.r_[hub, leaves], np.r_[leaves, hub], np.full(2 * n - 2, UNIT), n)
    found = local_push(star, np.array([1]), np.array([1.0]), rank=np.arange(n, dtype=np.uint64), epsilon=1e-9)
    assert found.nodes.tolist() == list(range(n))
    assert found.mass.sum() == pytest.approx(1, abs=1e-4)
    assert found.mass[0] == pytest.approx(1 / 3, abs=1e-5)


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(diffusion).failed == 0
