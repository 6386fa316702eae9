"""How long does a walk take: power iteration, igraph's PRPACK and local push on one graph, and do they agree?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.graph.diffusion import Diffused, local_push, power_iteration
from index.graph.push import UNIT
from index.graph.rows import SparseRows

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

SIZES = {129_000: 1_800_000, 1_000_000: 14_000_000}
"""Nodes and non-zeros: the graph of CogitoRAG's MuSiQue index (its Table 9), and eight times that."""

SEEDS, QUESTIONS, EXACT_QUESTIONS, TOP = 20, 41, 3, 50


def edges(nodes: int, nonzeros: int, random: np.random.Generator) -> tuple[Int64s, Int64s, Int64s]:
    """Both directions of a graph of entities and passages (one node in eleven), as rows, columns and weights.

    A quarter of the edges are mentions of weight 1, the others facts of weight 2 between two entities. Entity i is
    drawn with probability ~ i^(-1/2): a degree distribution with exponent 3, as under preferential attachment.
    """
    n_entities, half = nodes - nodes // 11, nonzeros // 2
    number = random.permutation(n_entities)

    def popular(count: int) -> Int64s:
        drawn: Int64s = number[(random.random(count) ** 2 * n_entities).astype(np.int64)]
        return drawn

    mentions, facts = half // 4, half - half // 4
    a = popular(half)
    b = np.concatenate((random.integers(n_entities, nodes, mentions), popular(facts)))
    weight = np.repeat([UNIT, 2 * UNIT], [mentions, facts])
    a, b, weight = a[a != b], b[a != b], weight[a != b]
    return np.concatenate((a, b)), np.concatenate((b, a)), np.concatenate((weight, weight))


def prpack(graph: SparseRows) -> Callable[[Int64s, Float64s], Float64s] | None:
    """igraph's solver on the same matrix, as a function from seeds and weights to all masses; None without igraph."""
    try:
        from igraph import Graph
    except ImportError:
        return None
    matrix = graph.to_csr(graph.n_rows).tocoo()
    upper = matrix.row < matrix.col
    pairs = np.column_stack((matrix.row[upper], matrix.col[upper])).astype(np.int64)
    network = Graph(n=graph.n_rows, edges=pairs)
    network.es["weight"] = matrix.data[upper] / UNIT

    def solve(seeds: Int64s, weights: Float64s) -> Float64s:
        reset = np.zeros(graph.n_rows)
        reset[seeds] = weights
        ranks = network.personalized_pagerank(
            directed=False, damping=0.5, reset=reset, weights="weight", implementation="prpack"
        )
        return np.asarray(ranks)

    return solve


def timed(solve: Callable[[Int64s, Float64s], Any], questions: list[Int64s]) -> tuple[list[Any], Float64s]:
    """Answers, and milliseconds of each."""
    answers, times = [], []
    for seeds in questions:
        weights = np.full(len(seeds), 1 / len(seeds))
        start = perf_counter()
        answers.append(solve(seeds, weights))
        times.append(1e3 * (perf_counter() - start))
    return answers, np.array(times)


def spread(milliseconds: Float64s) -> dict[str, float]:
    """Median, and the 10th and 90th percentile."""
    low, middle, high = np.percentile(milliseconds, [10, 50, 90])
    return {"median_ms": round(middle, 3), "p10_ms": round(low, 3), "p90_ms": round(high, 3)}


def best(found: Diffused) -> set[int]:
    return set(found.nodes[np.lexsort((found.nodes, -found.mass))][:TOP].tolist())


def measure(nodes: int, nonzeros: int) -> dict[str, Any]:
    """All solvers on one graph, then local push again with one entry in a hundred in the delta."""
    random = np.random.default_rng(20_260_717)
    rows, cols, weights = edges(nodes, nonzeros, random)
    base = SparseRows.from_entries(rows, cols, weights, nodes)
    rank = random.permutation(nodes).astype(np.uint64)
    questions = [random.choice(nodes - nodes // 11, SEEDS, replace=False) for _ in range(QUESTIONS)]

    push = partial(local_push, base, rank=rank)
    push(questions[0], np.full(SEEDS, 1 / SEEDS))
    found, pushing = timed(push, questions)
    exact, iterating = timed(partial(power_iteration, base), questions[:EXACT_QUESTIONS])
    agreement = [len(best(p) & best(e)) / TOP for p, e in zip(found, exact, strict=False)]
    report: dict[str, Any] = {
        "nodes": nodes,
        "nonzeros": base.n_base,
        "largest_degree": int(base.totals.max()) // UNIT,
        "push": spread(pushing)
        | {"pushes": int(np.median([f.steps for f in found])), "edges": int(np.median([f.edges for f in found]))},
        "power": spread(iterating) | {"iterations": exact[0].steps},
        "agreement_at_50": round(float(np.mean(agreement)), 3),
        "power_over_push": round(float(np.median(iterating) / np.median(pushing)), 1),
    }

    solve = prpack(base)
    if solve is None:
        report["prpack"] = "igraph is not installed"
    else:
        ranks, solving = timed(solve, questions[:EXACT_QUESTIONS])
        report["prpack"] = spread(solving) | {
            "largest_difference_to_power": max(
                float(np.abs(r[e.nodes] - e.mass).max()) for r, e in zip(ranks, exact, strict=True)
            )
        }
        report["prpack_over_push"] = round(float(np.median(solving) / np.median(pushing)), 1)

    pairs = random.choice(len(rows) // 2, nonzeros // 200, replace=False)
    moved = np.concatenate((pairs, pairs + len(rows) // 2))
    start = perf_counter()
    edited = base.extend(rows[moved], cols[moved], weights[moved], nodes)
    extending = 1e3 * (perf_counter() - start)
    _, chained = timed(partial(local_push, edited, rank=rank), questions)
    report["with_delta"] = spread(chained) | {"delta_entries": edited.n_delta, "extend_ms": round(extending, 3)}
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--nodes", type=int, help="one graph of this size with 14 non-zeros a node (default: both sizes)"
    )
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    options = parser.parse_args()
    sizes = {options.nodes: 14 * options.nodes} if options.nodes else SIZES
    report = json.dumps([measure(nodes, nonzeros) for nodes, nonzeros in sizes.items()], indent=2)
    if options.out:
        options.out.write_text(report + "\n")
    sys.stdout.write(report + "\n")


if __name__ == "__main__":
    main()
