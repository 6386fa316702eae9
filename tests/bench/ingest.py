"""Engine speed: from accepted event to committed index, how that grows, and how fresh it stays under load.

`python -m tests.bench.ingest [--passages N] [--out FILE]` prints JSON. Rules, hashing, no alias edges; times are of
this machine at this moment, so read the ratios and the spread.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from index.home import Home
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

from .corpus import documents

PASSAGES_PER_DOCUMENT = 5
PROBES = 40
PIPELINE = Pipeline(CONTENT, RulesExtractor(), HashingEmbedder(), alias_edges=False)


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: median, 95th and 99th percentile, largest."""
    times = sorted(1000 * one for one in seconds)
    cuts = quantiles(times, n=100, method="inclusive")
    return {
        "p50": round(median(times), 2),
        "p95": round(cuts[94], 2),
        "p99": round(cuts[98], 2),
        "max": round(times[-1], 2),
    }


def bulk_and_growth(folder: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """Passages per second while the index grows to each size, and the cost of one more document at each."""
    steps: list[dict[str, Any]] = []
    with Log(folder / "log.db") as log, Runner(Home(folder), log, PIPELINE) as runner:
        sent = 0

        def send(count: int, passages: int) -> None:
            nonlocal sent
            log.append(list(documents(count, passages, start=sent)))
            sent += count

        send(20, PASSAGES_PER_DOCUMENT)
        runner.drain()
        [writer] = runner.writers()
        for size in sizes:
            before = writer.manifest.counts.passages
            missing = (size - before) // PASSAGES_PER_DOCUMENT
            send(missing, PASSAGES_PER_DOCUMENT)
            started, cpu = time.perf_counter(), time.process_time()
            runner.drain()
            elapsed, busy = time.perf_counter() - started, time.process_time() - cpu
            grown = writer.manifest.counts.passages - before
            probes, commits = [], []
            for _ in range(PROBES):
                send(1, 1)
                started, cpu = time.perf_counter(), time.process_time()
                while not runner.step():
                    pass
                probes.append(time.perf_counter() - started)
                commits.append(time.process_time() - cpu)
            steps.append(
                {
                    "passages": writer.manifest.counts.passages,
                    "bulk_passages_per_second": round(grown / elapsed, 1),
                    "bulk_passages_per_cpu_second": round(grown / busy, 1),
                    "one_more_document_ms": spread(probes),
                    "one_more_document_cpu_ms": spread(commits),
                }
            )
    first, last = steps[0], steps[-1]
    growth = {
        kind: round(last[kind]["p50"] / first[kind]["p50"], 2)
        for kind in ("one_more_document_ms", "one_more_document_cpu_ms")
    }
    return {"steps": steps, "growth_of_one_more_document": growth}


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
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    sizes = [size for size in (1_000, 5_000, 20_000, 50_000, 100_000) if size < arguments.passages] + [
        arguments.passages
    ]
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        report = {
            "load_average": os.getloadavg()[0],
            "growth": bulk_and_growth(Path(one), sizes),
            "freshness": freshness(Path(other), 50, arguments.seconds),
        }
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
