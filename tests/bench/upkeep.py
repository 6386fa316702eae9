"""What the indexes of large tables cost the writer: one more document, and the upkeep between, with and without.

`python -m tests.bench.upkeep [--passages N ...] [--out FILE]` prints JSON. Rules, hashing, no alias edges; `with` has
an index of vectors from 1,000 rows on; full text comes at its usual size in both.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from index.home import Home
from index.maintenance import COMPACT_AFTER
from index.metrics import Metrics
from streams.applier import Pace
from streams.local import Runner
from streams.log import Log

from .corpus import documents
from .ingest import PASSAGES_PER_DOCUMENT, PIPELINE, spread

PROBES = 3 * COMPACT_AFTER
"""Commits of one document, with three rounds of upkeep among them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, nargs="+", default=[3_000, 12_000])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {}
    for name, exact_max in (("without", 10**8), ("with", 1_000)):
        with TemporaryDirectory(prefix="gistream-") as folder:
            report[name] = grown(Path(folder), given.passages, Pace(exact_max=exact_max))
    text = json.dumps(report, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


def grown(folder: Path, sizes: list[int], pace: Pace) -> list[dict[str, Any]]:
    steps = []
    metrics, sent = Metrics(), 0
    with Log(folder / "log.db") as log, Runner(Home(folder), log, PIPELINE, pace=pace, metrics=metrics) as runner:
        for size in sizes:
            more = size // PASSAGES_PER_DOCUMENT - sent
            log.append(list(documents(more, PASSAGES_PER_DOCUMENT, start=sent)))
            sent += more
            before, cpu = upkeep_seconds(metrics), time.process_time()
            runner.drain()
            bulk_cpu, bulk = time.process_time() - cpu, changed(before, upkeep_seconds(metrics))
            before = upkeep_seconds(metrics)
            seconds, work = [], []
            for _ in range(PROBES):
                log.append(list(documents(1, 1, start=sent)))
                sent += 1
                started, cpu = time.perf_counter(), time.process_time()
                while not runner.step():
                    pass
                seconds.append(time.perf_counter() - started)
                work.append(time.process_time() - cpu)
            [writer] = runner.writers()
            steps.append(
                {
                    **writer.manifest.counts.model_dump(),
                    "bulk_cpu_seconds": round(bulk_cpu, 2),
                    "bulk_upkeep_seconds": bulk,
                    "one_more_document_ms": spread(seconds),
                    "one_more_document_cpu_ms": spread(work),
                    "upkeep_seconds": changed(before, upkeep_seconds(metrics)),
                }
            )
    return steps


def upkeep_seconds(metrics: Metrics) -> dict[str, float]:
    """Seconds of every task of maintenance so far."""
    found = re.findall(r'gistream_maintenance_seconds_sum\{task="(\w+)"\} (\S+)', metrics.render().decode())
    return {task: float(seconds) for task, seconds in found}


def changed(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {task: round(seconds - before.get(task, 0), 3) for task, seconds in after.items()}


if __name__ == "__main__":
    main()
