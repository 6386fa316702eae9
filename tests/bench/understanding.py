"""How much of a slow model's concurrency is used: passages per second against what the model alone would allow.

`python -m tests.bench.understanding [--rounds N] [--out FILE]` prints JSON. The model is an endpoint in a process of
its own that answers after a fixed time; rules stand behind it, hashing makes the vectors. From the first event in the
log to the last visible passage, `share` is throughput times latency over concurrency: 1.0 is a model that never idles.
`share_under_way` takes the seconds that calls really took, which are longer on a busy machine: the part of the
concurrency that was in use, on average.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from index.home import Home
from index.metrics import Metrics
from index.models.hashing import HashingEmbedder
from index.types import DocumentEvent
from streams import ahead
from streams.applier import Pace
from streams.chunk import CONTENT
from streams.extract.openai import OpenAIExtractor
from streams.extract.spending import Spending
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

from ..streams.model_endpoint import serving
from .corpus import documents

PASSAGES_PER_DOCUMENT = 5


def _serve(latency: float, control: Connection) -> None:
    with serving(latency) as endpoint:
        control.send(endpoint.url)
        with suppress(EOFError):
            control.recv()
            control.send((len(endpoint.requests), endpoint.most_active))


@contextmanager
def model(latency: float) -> Iterator[tuple[str, Connection]]:
    """Address of an endpoint in another process; any message to it ends it and is answered by its counts."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(latency, theirs))
    process.start()
    theirs.close()
    try:
        yield ours.recv(), ours
    finally:
        # One that was not asked for its counts waits for a message for ever.
        ours.close()
        process.join(30)


def measure(
    latency: float, concurrency: int, rounds: int, namespaces: int = 1, look_ahead: bool = True
) -> dict[str, Any]:
    """Index about `rounds` times as many passages as the model reads at a time."""
    count = max(1, rounds * concurrency // PASSAGES_PER_DOCUMENT)
    events = [
        event.model_copy(update={"namespace": f"bench{number % namespaces}"})
        for number, event in enumerate(documents(count, PASSAGES_PER_DOCUMENT))
    ]
    with TemporaryDirectory() as name, model(latency) as (url, control), Log(Path(name) / "log.db") as log:
        folder = Path(name)
        metrics = Metrics()
        spending = Spending(folder / "spending.db")
        extractor = OpenAIExtractor("m", spending, base_url=url, concurrency=concurrency, metrics=metrics)
        pipeline = Pipeline(CONTENT, extractor, HashingEmbedder(), alias_edges=False)
        with (
            mock.patch.object(ahead, "ROUNDS", ahead.ROUNDS if look_ahead else 0),
            closing(Runner(Home(folder), log, pipeline, pace=Pace(batch_events=2 * concurrency))) as runner,
        ):
            # Kernels and tables are warm before the clock starts.
            for number in range(namespaces):
                first = DocumentEvent(namespace=f"bench{number}", id="first", text=f"Ada Moor met Bo {number}.")
                log.append([first])
            runner.drain()
            before, waited = extractor.spending.totals().calls, _call_seconds(metrics)
            log.append(events)
            started, cpu = time.perf_counter(), time.process_time()
            runner.drain()
            seconds, busy = time.perf_counter() - started, time.process_time() - cpu
        waited = _call_seconds(metrics) - waited
        calls = extractor.spending.totals().calls - before
        control.send(None)
        requests, most_active = control.recv()
    return {
        "latency_ms": round(1000 * latency),
        "concurrency": concurrency,
        "namespaces": namespaces,
        "look_ahead": look_ahead,
        "passages": calls,
        "seconds": round(seconds, 2),
        "passages_per_second": round(calls / seconds, 1),
        "share": round(calls * latency / (seconds * concurrency), 3),
        "share_under_way": round(waited / (seconds * concurrency), 3),
        "mean_call_ms": round(1000 * waited / calls, 1),
        "cpu_share_of_one_core": round(busy / seconds, 2),
        "requests": requests,
        "most_calls_under_way": most_active,
    }


def _call_seconds(metrics: Metrics) -> float:
    [line] = [line for line in metrics.render().decode().splitlines() if "model_call_seconds_sum" in line]
    return float(line.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rounds = arguments.rounds
    report = {
        "load_average": os.getloadavg()[0],
        "runs": [
            measure(0.3, 16, rounds),
            measure(0.3, 16, rounds, look_ahead=False),
            measure(0.3, 64, rounds),
            measure(0.3, 16, rounds, namespaces=40),
            measure(0.3, 16, rounds, namespaces=40, look_ahead=False),
        ],
    }
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
