"""A worker with very many namespaces, fed at random, and one of them busy: what a commit costs, and what it keeps.

`python -m tests.bench.many [--minutes M] [--namespaces N] [--per-second R] [--backlog D] [--out FILE]` prints JSON. One
`gistream worker --role all`, rules and hashing, one passage a document, and far more namespaces than it holds open.
Every namespace gets a document; that is the warm-up. Then documents come at a steady rate, each for any namespace; from
the worker's metrics the commits of that time, from the system the memory and open files of both its processes, in the
first minute and in the last one (or quarters of a shorter run). At last one namespace gets a backlog at once while the
others are fed as before: `cold_send_to_visible_ms` is what these notice of it, from the producer's send to their
manifest. `behind` is how many were sent and not visible when the feeding ended: few, else the rate is too high.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from deploy.worker import metrics_port
from index.token import Token
from index.types import DocumentEvent

from ..broker.cluster import Cluster
from ..broker.installation import Installation, Supervised, children, free_port, metrics
from ..broker.processes import open_files, resident
from .corpus import documents
from .ingest import spread
from .stream import lags, wait_for

HOT = "hot"
SAMPLE_SECONDS = 2.0


@dataclass
class Feeding:
    """A steady source of documents, each for a namespace at random; use it as a context."""

    installation: Installation
    namespaces: int
    per_second: float
    chance: random.Random
    sent: defaultdict[str, dict[Token, float]] = field(default_factory=lambda: defaultdict(dict))
    """By namespace when each document was handed to the producer, by its token; seconds since 1970."""

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Feeding:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def count(self) -> int:
        return sum(map(len, list(self.sent.values())))

    def _run(self) -> None:
        started, count = time.time(), 0
        with self.installation.producer() as inbox:
            while not self._over.wait(max(0.0, started + count / self.per_second - time.time())):
                number = self.chance.randrange(10**9)
                [event] = named(documents(1, 1, start=number), f"n{self.chance.randrange(self.namespaces)}")
                moment = time.time()
                [token] = inbox.append([event])
                self.sent[event.namespace][Token.parse(token)] = moment
                count += 1


def named(events: Any, namespace: str) -> list[DocumentEvent]:
    return [event.model_copy(update={"namespace": namespace}) for event in events]


@dataclass(frozen=True)
class Sample:
    """What both processes of a worker hold at one moment."""

    resident: Mapping[str, int]
    """Bytes, by role."""
    files: Mapping[str, int]

    @classmethod
    def of(cls, worker: Supervised) -> Sample:
        pids = children(worker)
        return cls(
            {role: resident(pid) for role, pid in pids.items()}, {role: open_files(pid) for role, pid in pids.items()}
        )


def watched(worker: Supervised, seconds: float) -> list[Sample]:
    """Samples over that time."""
    found, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        found.append(Sample.of(worker))
        time.sleep(min(SAMPLE_SECONDS, seconds / 8))
    return found


def memory(samples: Sequence[Sample], seconds: float) -> dict[str, Any]:
    """Megabytes at the beginning, at the end, on the way and at most, by role; and the open files."""
    few = max(1, round(len(samples) * min(60.0, seconds / 4) / seconds))
    found = {}
    for role in samples[0].resident:
        first, last = (fmean(one.resident[role] for one in part) / 2**20 for part in (samples[:few], samples[-few:]))
        found[role] = {
            "first_mb": round(first),
            "last_mb": round(last),
            "growth_mb": round(last - first, 1),
            "each_mb": [round(one.resident[role] / 2**20) for one in samples[:: max(1, len(samples) // 12)]],
            "most_mb": round(max(one.resident[role] for one in samples) / 2**20),
            "files_first": samples[0].files[role],
            "files_most": max(one.files[role] for one in samples),
        }
    return found


def quantile(before: Mapping[str, float], after: Mapping[str, float], name: str, share: float) -> float:
    """The value below which that share of a histogram's new observations lies, as Prometheus estimates it."""
    buckets = []
    for line, count in after.items():
        if line.startswith(f"{name}_bucket"):
            buckets.append((float(line.partition('le="')[2].partition('"')[0]), count - before.get(line, 0.0)))
    wanted, lower, below = share * max(count for _, count in buckets), 0.0, 0.0
    for upper, count in sorted(buckets):
        if count >= wanted:
            return lower + (upper - lower) * (wanted - below) / (count - below) if upper < float("inf") else lower
        lower, below = upper, count
    raise AssertionError("the last bucket holds all")


def mean_ms(before: Mapping[str, float], after: Mapping[str, float], name: str, labels: str = "") -> float | None:
    total, count = (after[key] - before.get(key, 0.0) for key in (f"{name}_sum{labels}", f"{name}_count{labels}"))
    return round(1000 * total / count, 1) if count else None


def measure(
    cluster: Cluster,
    folder: Path,
    prefix: str,
    *,
    namespaces: int,
    minutes: float,
    per_second: float,
    backlog: int,
    **settings: Any,
) -> dict[str, Any]:
    """Everything that the head of this file tells of; `settings` go to the worker."""
    chance, port, seconds = random.Random(namespaces), free_port(), 60 * minutes
    apply_port = metrics_port(port, "apply", 1)
    installation = Installation(folder / "data", cluster.bootstrap, prefix, partitions=12, **settings)
    report: dict[str, Any] = {"namespaces": namespaces, "documents_per_second": per_second, "minutes": minutes}
    with installation.worker(log=folder / "worker.log", worker_metrics_port=port) as worker:
        begun = time.time()
        with installation.producer() as inbox:
            for number in range(namespaces):
                inbox.append(named(documents(1, 1, start=number), f"n{number}"))
        wait_for(lambda: installation.documents() >= namespaces, within=2.0 * namespaces + 60)
        report["first_documents_seconds"] = round(time.time() - begun, 1)

        before = metrics(apply_port)
        with Feeding(installation, namespaces, per_second, chance) as steady:
            samples = watched(worker, seconds)
        after = metrics(apply_port)
        report["steady"] = {
            "sent": steady.count,
            "behind": steady.count - round(difference(before, after, "gistream_freshness_seconds_count")),
            "commits": round(difference(before, after, "gistream_commits_total")),
            "commit_p50_ms": round(1000 * quantile(before, after, "gistream_commit_seconds", 0.5), 1),
            "commit_p99_ms": round(1000 * quantile(before, after, "gistream_commit_seconds", 0.99), 1),
            "commit_mean_ms": mean_ms(before, after, "gistream_commit_seconds"),
            "freshness_p50_ms": round(1000 * quantile(before, after, "gistream_freshness_seconds", 0.5), 1),
            "freshness_p99_ms": round(1000 * quantile(before, after, "gistream_freshness_seconds", 0.99), 1),
            "opened": round(difference(before, after, 'gistream_namespaces_opened_total{role="writer"}')),
            "evicted": round(difference(before, after, 'gistream_namespaces_evicted_total{role="writer"}')),
            "memory": memory(samples, seconds),
        }
        wait_for(lambda: installation.documents() >= namespaces + steady.count)

        begun = time.time()
        with Feeding(installation, namespaces, per_second, chance) as beside:
            with installation.producer() as inbox:
                inbox.append(named(documents(backlog, 1), HOT))
            samples = [Sample.of(worker)]

            def applied() -> bool:
                samples.append(Sample.of(worker))
                return (newest := installation.newest(HOT)) is not None and newest.counts.documents >= backlog

            wait_for(applied, within=backlog / 5 + 60)
            took = time.time() - begun
        total = namespaces + steady.count + beside.count + backlog
        wait_for(lambda: installation.documents() >= total)
        report["hot"] = {
            "backlog": backlog,
            "seconds": round(took, 1),
            "cold_documents": beside.count,
            "cold_send_to_visible_ms": spread(all_lags(installation, beside.sent)),
            "memory": memory(samples, took),
        }
    report["restarts"] = (folder / "worker.log").read_text().count("is started again")
    return report


def difference(before: Mapping[str, float], after: Mapping[str, float], name: str) -> float:
    return after.get(name, 0.0) - before.get(name, 0.0)


def all_lags(installation: Installation, sent: Mapping[str, dict[Token, float]]) -> list[float]:
    return [one for name, moments in sent.items() for one in lags(installation, moments, name)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--namespaces", type=int, default=1_000)
    parser.add_argument("--per-second", type=float, default=3.0)
    parser.add_argument("--backlog", type=int, default=5_000)
    parser.add_argument("--open-namespaces", type=int, default=64)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report: dict[str, Any] = {"load_average": os.getloadavg()[0], "cores": os.cpu_count()}
    with TemporaryDirectory() as name, Cluster(Path(name) / "kafka") as cluster:
        report |= measure(
            cluster,
            Path(name),
            "many-",
            namespaces=arguments.namespaces,
            minutes=arguments.minutes,
            per_second=arguments.per_second,
            backlog=arguments.backlog,
            open_namespaces=arguments.open_namespaces,
        )
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
