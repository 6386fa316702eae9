"""What a paid model reads, it reads once, whatever dies meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.broker.cluster import Cluster
from tests.streams.model_endpoint import serving

from .stream_faults import FAULTS, Scene
from .stream_histories import History, Sending
from .streaming import installation

CONCURRENCY = 4
LATENCY = 0.1
FLOOD = 100
ROUNDS = 2
"""Passages that a worker has under way or read and not told of, in rounds of the concurrency."""


def run(
    folder: Path,
    broker: Cluster,
    prefix: str,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    faults: Sequence[str],
    rereading: Sequence[str],
) -> dict[str, Any]:
    """Workers whose model counts its calls live through `faults`; then they are made to read all of it again by those
    of `rereading`. Returns figures.

    Every passage is a document of its own, so that no two workers are given the same at once.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chance, began = random.Random(seed), time.monotonic()
    with (
        serving(LATENCY) as endpoint,
        installation(
            folder,
            broker.bootstrap,
            prefix,
            seed,
            extractor="openai",
            extractor_base_url=endpoint.url,
            extractor_concurrency=CONCURRENCY,
            chunker="whole",
        ) as stream,
    ):
        for worker in [stream.start(), stream.start()]:
            worker.ready()
        with Sending(stream, History(seed)) as sending:
            for fault in faults:
                stream.settle(dict(stream.sent))
                sending.flood(FLOOD)
                time.sleep(chance.random())
                FAULTS[fault](Scene(stream, broker, chance))
        stream.settle()
        calls, passages, kills = sum(endpoint.asked.values()), len(endpoint.asked), stream.kills
        read = {(event.title, event.text) for event in stream.sent.values() if event.op == "upsert"}
        assert set(endpoint.asked) == read
        again = {passage: count for passage, count in endpoint.asked.items() if count > 1}
        assert calls <= passages + ROUNDS * CONCURRENCY * kills, again

        for fault in rereading:
            FAULTS[fault](Scene(stream, broker, chance))
        stream.settle()
        for worker in stream.workers:
            worker.ready()
        stream.send([History(seed + 1).next()])
        stream.settle()
        assert sum(endpoint.asked.values()) <= calls + 1, "what was read before is paid for again"
        stream.check()
        stream.stop(*stream.workers)
    return {
        "seed": seed,
        "faults": list(faults),
        "events": len(stream.sent),
        "kills": kills,
        "passages": passages,
        "calls": calls,
        "calls_when_it_was_read_again": sum(endpoint.asked.values()) - calls,
        "seconds": round(time.monotonic() - began, 1),
    }


@pytest.mark.slow
def test_a_passage_is_paid_once(
    broker: Cluster, kafka_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(run(tmp_path, broker, kafka_prefix, 5, monkeypatch, ["role-killed"], ["offsets-ahead"]))


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("fault", ["role-killed", "worker-killed", "all-killed", "worker-joins-and-leaves"])
def test_soak_a_passage_is_paid_once(
    broker: Cluster,
    kafka_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    soak_report: Callable[[dict[str, Any]], None],
    fault: str,
    seed: int,
) -> None:
    soak_report(run(tmp_path, broker, kafka_prefix, seed, monkeypatch, [fault] * 3, ["offsets-lost", "started-over"]))
