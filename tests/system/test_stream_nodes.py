"""A cluster of three nodes loses one of them and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker.cluster import Cluster

from .stream_histories import History, Sending
from .streaming import installation

BOUND = 60.0
"""Seconds within which an event that is sent when a node dies is acknowledged, and visible."""


def run(folder: Path, nodes: Cluster, prefix: str, seed: int, dying: list[int]) -> dict[str, Any]:
    """Kill these nodes, one after the other, while a history is sent; each comes back. Returns figures."""
    with installation(folder, nodes.bootstrap, prefix, seed) as stream:
        stream.start().ready()
        recoveries = []
        with Sending(stream, History(seed)):
            for node in dying:
                nodes.kill(node)
                killed, known = time.monotonic(), len(stream.sent)
                stream.wait_for_more_than(known)
                stream.settle(dict(stream.sent))
                recoveries.append(round(time.monotonic() - killed, 1))
                nodes.start(node)
        stream.settle()
        stream.check()
        stream.stop(*stream.workers)
        assert max(recoveries) < BOUND, recoveries
        return {
            "seed": seed,
            "killed_nodes": dying,
            "events": len(stream.sent),
            "lost": 0,
            "twice": 0,
            "acknowledged_and_visible_after_seconds": recoveries,
            "slowest_acknowledgement_seconds": round(stream.slowest, 1),
        }


@pytest.mark.slow
def test_one_node_of_three_dies(three_nodes: Cluster, kafka_prefix: str, tmp_path: Path) -> None:
    print(run(tmp_path, three_nodes, kafka_prefix, 21, [1]))


@pytest.mark.soak
@pytest.mark.parametrize("seed", [31, 32])
def test_soak_each_node_dies(
    three_nodes: Cluster,
    kafka_prefix: str,
    tmp_path: Path,
    soak_report: Callable[[dict[str, Any]], None],
    seed: int,
) -> None:
    soak_report(run(tmp_path, three_nodes, kafka_prefix, seed, [1, 2, 3]))
