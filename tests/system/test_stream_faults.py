"""The stream is effectively once: whatever dies, freezes or is forgotten, the index is what the history says."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.broker.cluster import Cluster

from .stream_faults import FAULTS, Scene
from .stream_histories import History, Sending
from .streaming import Stream, installation

FLOOD = 300
"""Events that come at once before each fault, so that it finds work half done."""
Report = Callable[[dict[str, Any]], None]


def run(
    stream: Stream, broker: Cluster, seed: int, faults: Sequence[str], *, overlapping: bool = False
) -> dict[str, Any]:
    """Two workers live through these faults while a history is sent; returns figures.

    Each fault finds a stream that works, unless they are `overlapping`.
    """
    chance, began = random.Random(seed), time.monotonic()
    took, recovered = list[float](), list[float]()
    for worker in [stream.start(), stream.start()]:
        worker.ready()
    with Sending(stream, History(seed)) as sending:
        for fault in faults:
            if not overlapping:
                recovered.append(round(stream.settle(dict(stream.sent)), 1))
            before = len(stream.sent)
            sending.flood(FLOOD)
            if chance.random() < 0.7:
                stream.wait_for_some(dict([*stream.sent.items()][before:]))
            # The moment is what is random here; nothing waits for it.
            time.sleep(chance.random() * 0.7)
            started = time.monotonic()
            FAULTS[fault](Scene(stream, broker, chance))
            took.append(round(time.monotonic() - started, 1))
    settled = stream.settle()
    stream.check()
    stream.stop(*stream.workers)
    return {
        "seed": seed,
        "faults": list(faults),
        "fault_seconds": took,
        "then_visible_after_seconds": recovered[1:],
        "events": len(stream.sent),
        "kills": stream.kills,
        "lost": 0,
        "twice": 0,
        "refused_calls": stream.refused,
        "slowest_acknowledgement_seconds": round(stream.slowest, 2),
        "settled_after_seconds": round(settled, 2),
        "seconds": round(time.monotonic() - began, 1),
    }


@pytest.mark.slow
def test_a_history_survives_what_happens(broker: Cluster, kafka_prefix: str, tmp_path: Path) -> None:
    faults = ["role-killed", "worker-frozen", "broker-killed"]
    with installation(tmp_path, broker.bootstrap, kafka_prefix, 11) as stream:
        print(run(stream, broker, 11, faults))


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("fault", FAULTS)
def test_soak_one_fault(
    broker: Cluster, kafka_prefix: str, tmp_path: Path, soak_report: Report, fault: str, seed: int
) -> None:
    with installation(tmp_path, broker.bootstrap, kafka_prefix, seed) as stream:
        soak_report(run(stream, broker, seed, [fault] * 3))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_soak_many_faults(broker: Cluster, kafka_prefix: str, tmp_path: Path, soak_report: Report, seed: int) -> None:
    faults = random.Random(seed).choices(list(FAULTS), k=6)
    with installation(tmp_path, broker.bootstrap, kafka_prefix, seed) as stream:
        soak_report(run(stream, broker, seed, faults, overlapping=True))
