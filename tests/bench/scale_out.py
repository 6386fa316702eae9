"""What more understanding workers and more calls at a time bring, where a slow model is what everybody waits for.

`python -m tests.bench.scale_out [--rounds N] [--workers 1,2,4] [--concurrency 4,8,16,32,64] [--namespaces 1,20]
[--out FILE]` prints JSON. The model is a process of its own that answers after 300 ms; rules stand behind it, hashing
makes the vectors. Every understanding worker is a process, and one more applies. All are members of their groups and
the documents are in Kafka before the model gives its first answer; from then to the last visible passage the clock
runs. `share` is throughput times latency over the calls that are allowed at a time: 1.0 is a model that never idles.
`share_under_way` takes the seconds that calls really took, which are longer on a busy machine: the part of the allowed
calls that was in use, on average. `understood_seconds` is when the last passage was told of; `rebalances` in a run cost
it seconds each. `cpu` is in cores; broker, model, applier and workers share the machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deploy.worker import metrics_port
from index.types import DocumentEvent
from streams.chunk import chunk

from ..broker.cluster import Cluster
from ..broker.installation import Installation, Supervised, children, free_port, metrics
from ..broker.processes import cpu_seconds
from ..streams.model_endpoint import serving
from .corpus import documents
from .stream import passages, wait_for

LATENCY = 0.3
PASSAGES_PER_DOCUMENT = 5
PARTITIONS = 12
"""The default of `gistream topics create`."""


def _serve(latency: float, control: Connection) -> None:
    with serving(latency) as endpoint:
        endpoint.gate.clear()
        control.send(endpoint.url)
        with suppress(EOFError):
            control.recv()
            endpoint.gate.set()
            control.recv()
            control.send((len(endpoint.requests), len(endpoint.asked), endpoint.most_active))


class Model:
    """A model in a process of its own, which gives no answer before `open`."""

    def __init__(self, url: str, control: Connection, pid: int) -> None:
        self.url = url
        self.pid = pid
        self._control = control

    def open(self) -> None:
        self._control.send(None)

    def counts(self) -> tuple[int, int, int]:
        """Calls, different passages, and the most calls at a time; it answers no more afterwards."""
        self._control.send(None)
        calls, different, most = self._control.recv()
        return calls, different, most


@contextmanager
def model(latency: float) -> Iterator[Model]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(latency, theirs))
    process.start()
    theirs.close()
    try:
        yield Model(ours.recv(), ours, process.pid or 0)
    finally:
        ours.close()
        process.join(30)


def measure(
    cluster: Cluster, folder: Path, prefix: str, *, workers: int, concurrency: int, namespaces: int, rounds: int
) -> dict[str, Any]:
    """Index `rounds` times as many passages as the workers read at a time."""
    folder.mkdir()
    count = rounds * workers * concurrency // PASSAGES_PER_DOCUMENT
    events = spread_out(count, namespaces)
    with ExitStack() as stack:
        endpoint = stack.enter_context(model(LATENCY))
        settings = {"extractor": "openai", "extractor_base_url": endpoint.url, "extractor_concurrency": concurrency}
        installation = Installation(folder / "data", cluster.bootstrap, prefix, partitions=PARTITIONS, **settings)
        logs = {"apply": [folder / "apply.log"]}
        logs["understand"] = [folder / f"understand{number}.log" for number in range(workers)]
        port = free_port()
        ports = [metrics_port(port, "understand", slot) for slot in range(1, workers + 1)]
        started: dict[str, list[Supervised]] = {
            role: [stack.enter_context(installation.worker(role, log=log, worker_metrics_port=port)) for log in files]
            for role, files in logs.items()
        }
        wait_for(lambda: all(are_members(files) for files in logs.values()))
        with installation.producer() as inbox:
            inbox.append(events)
        pids = {role: [pid for one in found for pid in children(one).values()] for role, found in started.items()}
        pids |= {"model": [endpoint.pid], "broker": [cluster.pid]}
        assignments, used, begun = _assignments(logs), _cpu(pids), time.time()
        endpoint.open()
        wait_for(lambda: installation.documents() > 0)
        # The first calls have waited for the others to come.
        first = _calls(ports)
        wait_for(lambda: _total(ports, "gistream_passages_understood_total") >= _passages(events))
        understood = time.time() - begun
        wait_for(lambda: installation.documents() >= count)
        seconds, used_then = time.time() - begun, _cpu(pids)
        call_seconds = _mean_call(first, _calls(ports))
        calls, different, most = endpoint.counts()
        done = passages(installation.home)
        rebalances = _assignments(logs) - assignments
    ideal = workers * concurrency / LATENCY
    return {
        "workers": workers,
        "concurrency_each": concurrency,
        "namespaces": namespaces,
        "documents": count,
        "passages": done,
        "seconds": round(seconds, 2),
        "passages_per_second": round(done / seconds, 1),
        "share": round(done / seconds / ideal, 3),
        "share_under_way": round(calls * call_seconds / (seconds * workers * concurrency), 3),
        "understood_seconds": round(understood, 2),
        "call_ms": round(1000 * call_seconds),
        "calls": calls,
        "different_passages": different,
        "most_calls_at_a_time": most,
        "rebalances": rebalances,
        "cpu": {role: round((used_then[role] - used[role]) / seconds, 2) for role in pids},
    }


def spread_out(count: int, namespaces: int) -> list[DocumentEvent]:
    return [
        event.model_copy(update={"namespace": f"bench{number % namespaces}"})
        for number, event in enumerate(documents(count, PASSAGES_PER_DOCUMENT))
    ]


_ASSIGNED = re.compile(r"works on partitions \[([\d, ]*)\]")


def are_members(logs: Sequence[Path]) -> bool:
    """Whether every worker of a role has partitions, and together they have each once."""
    held = [_ASSIGNED.findall(log.read_text()) for log in logs]
    newest = [[int(number) for number in found[-1].split(",") if number.strip()] for found in held if found]
    return len(newest) == len(logs) and all(newest) and sorted(chain.from_iterable(newest)) == list(range(PARTITIONS))


def _assignments(logs: Mapping[str, Sequence[Path]]) -> int:
    """How often a worker was assigned its partitions."""
    return sum(len(_ASSIGNED.findall(log.read_text())) for log in chain.from_iterable(logs.values()))


def _passages(events: Sequence[DocumentEvent]) -> int:
    return sum(len(chunk(event.text)) for event in events)


def _total(ports: Sequence[int], name: str) -> float:
    return sum(metrics(port).get(name, 0.0) for port in ports)


def _calls(ports: Sequence[int]) -> tuple[float, float]:
    """Seconds of all calls that came back so far, and how many did."""
    name = "gistream_model_call_seconds"
    return _total(ports, f"{name}_sum"), _total(ports, f"{name}_count")


def _mean_call(first: tuple[float, float], last: tuple[float, float]) -> float:
    return (last[0] - first[0]) / (last[1] - first[1])


def _cpu(pids: Mapping[str, Sequence[int]]) -> dict[str, float]:
    return {role: sum(map(cpu_seconds, found)) for role, found in pids.items()}


def growth(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same runs, each with its speed-up against the first."""
    first = runs[0]["passages_per_second"]
    return [run | {"speed_up": round(run["passages_per_second"] / first, 2)} for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--namespaces", default="1,20")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--concurrency", default="4,8,16,32,64")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report: dict[str, Any] = {
        "load_average": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "latency_ms": round(1000 * LATENCY),
        "partitions": PARTITIONS,
    }
    with TemporaryDirectory() as name, Cluster(Path(name) / "kafka") as cluster:

        @cache
        def measured(workers: int, concurrency: int, namespaces: int) -> dict[str, Any]:
            label = f"w{workers}c{concurrency}n{namespaces}-"
            return measure(
                cluster,
                Path(name) / label,
                label,
                workers=workers,
                concurrency=concurrency,
                namespaces=namespaces,
                rounds=arguments.rounds,
            )

        for namespaces in _numbers(arguments.namespaces):
            report[f"{namespaces}_namespaces"] = {
                "workers": growth([measured(count, 8, namespaces) for count in _numbers(arguments.workers)]),
                "concurrency": growth([measured(1, count, namespaces) for count in _numbers(arguments.concurrency)]),
            }
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


if __name__ == "__main__":
    main()
