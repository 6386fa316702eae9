"""Engine speed: from accepted event to committed index, how that grows, and how fresh it stays under load.

`python -m tests.bench.ingest [--passages N] [--out FILE]` prints JSON. Rules and hashing; the curve is drawn without
alias edges and, up to a third of its length, with them. Times are of this machine at this moment, so read the ratios
and the spread.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.aliases import Aliases
from index.graph.segment import Relation
from index.home import Home
from index.keys import entity_key
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.types import Entity, Role
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

from .corpus import documents

PASSAGES_PER_DOCUMENT = 5
PROBES = 128
"""Documents sent one by one at each size: twice as many as commits between two compactions, so that these count too."""
TIMES, CALLS = ("ms", "cpu_ms"), ("embedder_calls", "texts_embedded", "table_operations")
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
PIPELINE = Pipeline(CONTENT, RulesExtractor(), HashingEmbedder(), alias_edges=False)


class Counting(HashingEmbedder):
    """Hashing that declares a threshold for alias edges, so high that few names reach it, and counts its work."""

    def __init__(self) -> None:
        super().__init__()
        self.alias_threshold = 0.9
        self.calls = 0
        self.texts = 0

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        self.calls += 1
        self.texts += len(texts)
        return super().embed(texts, role)


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: median, 95th and 99th percentile, largest, mean."""
    times = sorted(1000 * one for one in seconds)
    cuts = quantiles(times, n=100, method="inclusive")
    return {
        "p50": round(median(times), 2),
        "p95": round(cuts[94], 2),
        "p99": round(cuts[98], 2),
        "max": round(times[-1], 2),
        "mean": round(fmean(times), 2),
    }


def growth(folder: Path, sizes: Sequence[int], *, alias_edges: bool) -> dict[str, Any]:
    """Passages per second while the index grows to each size, and what one more document costs there with upkeep."""
    embedder = Counting()
    pipeline = Pipeline(CONTENT, RulesExtractor(), embedder, alias_edges=alias_edges)
    steps: list[dict[str, Any]] = []
    with Log(folder / "log.db") as log, Runner(Home(folder), log, pipeline) as runner:
        sent = 0

        def send(count: int, passages: int) -> None:
            nonlocal sent
            log.append(list(documents(count, passages, start=sent)))
            sent += count

        def operations() -> int:
            """Versions of all tables: every addition and deletion makes one."""
            return sum(writer.manifest.tables.values())

        send(20, PASSAGES_PER_DOCUMENT)
        runner.drain()
        [writer] = runner.writers()
        for size in sizes:
            before = writer.manifest.counts.passages
            send((size - before) // PASSAGES_PER_DOCUMENT, PASSAGES_PER_DOCUMENT)
            started, cpu = time.perf_counter(), time.process_time()
            runner.drain()
            elapsed, busy = time.perf_counter() - started, time.process_time() - cpu
            grown = writer.manifest.counts.passages - before
            seconds, cpu_seconds = [], []
            calls, texts, made = embedder.calls, embedder.texts, operations()
            for _ in range(PROBES):
                send(1, 1)
                started, cpu = time.perf_counter(), time.process_time()
                while not runner.step():
                    pass
                seconds.append(time.perf_counter() - started)
                cpu_seconds.append(time.process_time() - cpu)
            steps.append(
                {
                    **writer.manifest.counts.model_dump(),
                    "bulk_passages_per_second": round(grown / elapsed, 1),
                    "bulk_passages_per_cpu_second": round(grown / busy, 1),
                    "one_more_document": {
                        "ms": spread(seconds),
                        "cpu_ms": spread(cpu_seconds),
                        "embedder_calls": round((embedder.calls - calls) / PROBES, 2),
                        "texts_embedded": round((embedder.texts - texts) / PROBES, 2),
                        "table_operations": round((operations() - made) / PROBES, 2),
                    },
                    "segments": len(writer.manifest.segments),
                }
            )
        edges = sum(len(segment[Relation.ALIASES]) for segment in writer.segments.values()) // 2
    first, last = (steps[at]["one_more_document"] for at in (0, -1))
    return {
        "alias_edges": edges if alias_edges else None,
        "steps": steps,
        "last_over_first": {
            **{f"{of}_{kind}": round(last[kind][of] / first[kind][of], 2) for kind in TIMES for of in ("p50", "mean")},
            **{kind: round(last[kind] / first[kind], 2) for kind in CALLS},
        },
    }


def births(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """What finding the alias edges of ten new entities costs among so many living ones; vectors are random."""
    random = np.random.default_rng(20_261_117)
    aliases = Aliases(384, 0.8, same_digits=True)
    found: list[dict[str, Any]] = []
    for former, size in pairwise((0, *sizes)):
        count = size - former
        vectors = random.standard_normal((count, 384), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        living = [Entity(entity_key(f"e {size} {n}"), f"e {size} {n}", "") for n in range(count)]
        aliases.bear(living, vectors)
        times, busy = [], []
        for start in range(0, 200, 10):
            started, cpu = time.perf_counter(), time.thread_time()
            aliases.edges([entity.key for entity in living[start : start + 10]])
            times.append(time.perf_counter() - started)
            busy.append(time.thread_time() - cpu)
        found.append({"entities": size, "ten_births_ms": spread(times), "ten_births_cpu_ms": spread(busy)})
    return found


def freshness(folder: Path, per_second: int, seconds: float) -> dict[str, Any]:
    """Send documents at a steady rate and see when each becomes visible to a reader."""
    home = Home(folder)
    sent: list[tuple[int, float]] = []
    lags: list[float] = []
    with Log(folder / "log.db") as log, Runner(home, log, PIPELINE) as runner:
        log.append(list(documents(200, PASSAGES_PER_DOCUMENT)))
        runner.drain()
        reader = Reader(home.incarnation("bench"))
        runner.start()
        events = list(documents(round(per_second * seconds), 1, start=10_000))
        done = threading.Event()

        def watch() -> None:
            seen = 0
            while not (done.is_set() and seen == len(sent)):
                visible = reader.refresh().manifest.positions["log"]
                moment = time.perf_counter()
                while seen < len(sent) and sent[seen][0] <= visible:
                    lags.append(moment - sent[seen][1])
                    seen += 1
                time.sleep(0.002)

        watcher = threading.Thread(target=watch)
        watcher.start()
        started = time.perf_counter()
        for place, event in enumerate(events):
            # A steady source: each document has its moment, whatever became of the one before.
            time.sleep(max(0.0, started + place / per_second - time.perf_counter()))
            moment = time.perf_counter()
            sent.append((int(log.append([event])[0].rpartition(":")[2]), moment))
        rate = len(events) / (time.perf_counter() - started)
        done.set()
        watcher.join()
    return {"documents_per_second": round(rate, 1), "documents": len(lags), "event_to_visible_ms": spread(lags)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=SIZES[-1])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long documents stream in for the freshness")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    sizes = [size for size in SIZES if size < arguments.passages] + [arguments.passages]
    report: dict[str, Any] = {"load_average": os.getloadavg()[0]}
    with TemporaryDirectory() as folder:
        report["growth"] = growth(Path(folder), sizes, alias_edges=False)
    with TemporaryDirectory() as folder:
        report["growth_with_alias_edges"] = growth(
            Path(folder), [size for size in sizes if size <= sizes[-1] / 3], alias_edges=True
        )
    report["alias_edges_of_new_entities"] = births((1_000, 10_000, 100_000))
    with TemporaryDirectory() as folder:
        report["freshness"] = freshness(Path(folder), 50, arguments.seconds)
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
