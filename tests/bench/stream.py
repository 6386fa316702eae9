"""What Kafka costs: bulk against the embedded runner, freshness at a steady rate, and recovery after kill -9.

`python -m tests.bench.stream [--documents N] [--seconds S] [--out FILE]` prints JSON. It starts a broker of its own;
that broker, both workers and the sender share the machine. Rules read and hashing embeds, so
nothing waits for a model. Bulk: the same documents, all accepted before anything is applied; `ratio` is through Kafka,
from the first worker's first partition on, over embedded, alternating in one run. Freshness is from the producer's send
to the manifest that shows the event. Recovery is from SIGKILL to the next manifest while documents stream in.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from index.home import Home
from index.manifest import Manifests
from index.models.hashing import HashingEmbedder
from index.token import Token
from index.types import DocumentEvent
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

from ..broker.cluster import Cluster
from ..broker.installation import Installation, children, kill
from ..support import wait_until
from .corpus import documents
from .ingest import spread

PASSAGES_PER_DOCUMENT = 5
NAMESPACES = 4
_WAIT_SECONDS = 300.0


def bulk_documents(count: int) -> list[DocumentEvent]:
    return [
        event.model_copy(update={"namespace": f"bench{number % NAMESPACES}"})
        for number, event in enumerate(documents(count, PASSAGES_PER_DOCUMENT))
    ]


def passages(home: Home) -> int:
    newest = (Manifests(home.incarnation(name) / "manifests").newest() for name in home.names())
    return sum(manifest.counts.passages for manifest in newest)


def embedded(folder: Path, events: list[DocumentEvent]) -> float:
    """Passages per second of the embedded runner."""
    home = Home(folder)
    pipeline = Pipeline(CONTENT, RulesExtractor(), HashingEmbedder())
    with Log(folder / "log.db") as log, closing(Runner(home, log, pipeline)) as runner:
        log.append(events)
        started = time.perf_counter()
        runner.drain()
        seconds = time.perf_counter() - started
    return passages(home) / seconds


def through_kafka(installation: Installation, folder: Path, events: list[DocumentEvent]) -> dict[str, float]:
    """Passages per second through both workers, and how long they took to start."""
    with installation.producer() as inbox:
        inbox.append(events)
    begun = time.time()
    log = folder / "worker.log"
    with installation.worker(log=log):
        wait_for(lambda: installation.documents() >= len(events))
        ended = time.time()
    assigned = min(
        datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()
        for line in log.read_text().splitlines()
        if "understand works on partitions" in line
    )
    done = passages(installation.home)
    return {"passages_per_second": done / (ended - assigned), "start_seconds": assigned - begun}


def bulk(cluster: Cluster, folder: Path, count: int, rounds: int) -> dict[str, Any]:
    events = bulk_documents(count)
    runs = []
    for number in range(rounds):
        alone = embedded(folder / f"embedded{number}", events)
        place = folder / f"kafka{number}"
        place.mkdir()
        stream = through_kafka(Installation(place / "data", cluster.bootstrap, f"bulk{number}-"), place, events)
        runs.append(
            {
                "embedded_passages_per_second": round(alone),
                "kafka_passages_per_second": round(stream["passages_per_second"]),
                "worker_start_seconds": round(stream["start_seconds"], 1),
                "ratio": round(stream["passages_per_second"] / alone, 3),
            }
        )
    return {"documents": count, "runs": runs, "ratio_median": median(run["ratio"] for run in runs)}


class Sending:
    """A steady source: each document has its moment, whatever became of the one before."""

    def __init__(self, installation: Installation, per_second: float, seconds: float) -> None:
        self.sent: dict[Token, float] = {}
        """When each was handed to the producer, by its token; seconds since 1970."""
        self._installation = installation
        self._events = list(documents(round(per_second * seconds), 1, start=10_000))
        self._per_second = per_second
        self._thread = threading.Thread(target=self._run)

    @contextmanager
    def under_way(self) -> Iterator[None]:
        self._thread.start()
        yield
        self._thread.join()

    def _run(self) -> None:
        started = time.time()
        with self._installation.producer() as inbox:
            for place, event in enumerate(self._events):
                time.sleep(max(0.0, started + place / self._per_second - time.time()))
                moment = time.time()
                [token] = inbox.append([event])
                self.sent[Token.parse(token)] = moment


def lags(installation: Installation, sent: dict[Token, float], name: str = "bench") -> list[float]:
    """Seconds from the send of each event of a namespace to the manifest that shows it."""
    manifests = Manifests(installation.home.incarnation(name) / "manifests")
    shown = [manifests.read(number) for number in manifests.numbers()]
    found = []
    waiting = sorted(sent.items(), key=lambda one: one[0])
    for manifest in shown:
        left = []
        for token, moment in waiting:
            if manifest.positions.get(token.source, -1) >= token.position:
                found.append(manifest.time.timestamp() - moment)
            else:
                left.append((token, moment))
        waiting = left
    assert not waiting, f"{len(waiting)} events are not visible"
    return found


def freshness(cluster: Cluster, folder: Path, per_second: float, seconds: float) -> dict[str, Any]:
    folder.mkdir()
    installation = Installation(folder / "data", cluster.bootstrap, "fresh-")
    with installation.producer() as inbox:
        inbox.append(list(documents(200, PASSAGES_PER_DOCUMENT)))
    with installation.worker(log=folder / "worker.log"):
        wait_for(lambda: installation.documents() >= 200)
        sending = Sending(installation, per_second, seconds)
        with sending.under_way():
            pass
        wait_for(lambda: installation.documents() >= 200 + len(sending.sent))
    found = lags(installation, sending.sent)
    return {"documents_per_second": per_second, "documents": len(found), "send_to_visible_ms": spread(found)}


def recovery(cluster: Cluster, folder: Path, kills: int) -> dict[str, Any]:
    """Seconds from kill -9 of one process to the next commit made after it, while 20 documents a second come in."""
    folder.mkdir()
    installation = Installation(folder / "data", cluster.bootstrap, "recovery-")
    found: dict[str, list[float]] = {"apply": [], "understand": [], "supervisor": []}
    with installation.producer() as inbox:
        inbox.append(list(documents(50, 1)))

    def next_commit(after: float) -> float:
        at: list[float] = []

        def seen() -> bool:
            newest = installation.newest("bench")
            # Opening a namespace commits as well, and shows nothing new.
            if newest is not None and newest.cause == "batch" and newest.time.timestamp() > after:
                at.append(newest.time.timestamp())
            return bool(at)

        wait_for(seen)
        return at[0] - after

    for number in range(kills):
        for which, times in found.items():
            # A supervisor that is killed is replaced by another one, as a container would be.
            with installation.worker(log=folder / f"{which}{number}.log") as worker:
                wait_for(lambda: len(children(worker)) == 2)
                next_commit_after_start = Sending(installation, 20, 30 if which == "supervisor" else 25)
                with next_commit_after_start.under_way():
                    next_commit(time.time())
                    time.sleep(2)
                    if which == "supervisor":
                        moment = kill(worker.pid)
                        with installation.worker(log=folder / f"again{number}.log"):
                            times.append(next_commit(moment + 0.2) + 0.2)
                    else:
                        # What was under way before the kill may still become visible for a moment.
                        moment = kill(children(worker)[which])
                        times.append(next_commit(moment + 0.5) + 0.5)
    return {which: {"seconds": [round(one, 1) for one in times]} for which, times in found.items()}


def wait_for(condition: Callable[[], bool], within: float = _WAIT_SECONDS) -> None:
    wait_until(condition, timeout=within, what="the stream")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--parts", default="bulk,freshness,recovery")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report: dict[str, Any] = {"load_average": os.getloadavg()[0], "cores": os.cpu_count()}
    with TemporaryDirectory() as name, Cluster(Path(name) / "kafka") as cluster:
        folder = Path(name)
        if "bulk" in arguments.parts:
            report["bulk"] = bulk(cluster, folder, arguments.documents, arguments.rounds)
        if "freshness" in arguments.parts:
            report["freshness"] = freshness(cluster, folder / "freshness", 50, arguments.seconds)
        if "recovery" in arguments.parts:
            report["recovery"] = recovery(cluster, folder / "recovery", arguments.kills)
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
