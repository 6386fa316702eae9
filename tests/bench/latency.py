"""How long do questions take over a large index, while it is quiet and while documents stream into it?

`python -m tests.bench.latency [--passages N] [--seconds S] [--out FILE]` prints JSON. A process of its own writes; this
one follows and asks every mode in turn, from the text of a question to the rows of its answer (hashing embeds it in a
fraction of a millisecond). Times are of this machine at this moment.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deploy.warm import warm_up
from index.home import Home
from index.memory import keep_few_arenas
from index.reader import Reader
from query.readers import PAUSE_SECONDS
from query.retrieve import MODES, retrieve
from streams.local import Runner
from streams.log import Log

from .corpus import documents
from .ingest import PASSAGES_PER_DOCUMENT, PIPELINE, spread

Taken = dict[str, list[tuple[float, float]]]
"""Seconds and CPU seconds of every question, by mode."""

QUESTIONS = 60
"""Of each mode while the index is quiet."""
PER_SECOND = 50


def resident() -> dict[str, float]:
    """GB of memory that this process holds, and how much of that are files that it has mapped."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    kilobytes = {line[0]: int(line[1]) for line in lines if line[0] in ("VmRSS:", "RssFile:", "VmHWM:")}
    names = {"VmRSS:": "resident_gb", "RssFile:": "of_it_files_gb", "VmHWM:": "peak_gb"}
    return {names[line]: round(amount / 1e6, 2) for line, amount in kilobytes.items()}


def write(folder: Path, passages: int, seconds: float, told: Connection) -> None:
    """Make an index of so many passages; when told to, add documents at a steady rate."""
    with Log(folder / "log.db") as log, Runner(Home(folder), log, PIPELINE) as runner:
        count = passages // PASSAGES_PER_DOCUMENT
        log.append(list(documents(count, PASSAGES_PER_DOCUMENT)))
        runner.drain()
        [writer] = runner.writers()
        told.send({"counts": writer.manifest.counts.model_dump(), "memory": resident()})
        told.recv()
        runner.start()
        started = time.perf_counter()
        for place, event in enumerate(documents(round(PER_SECOND * seconds), 1, start=count)):
            time.sleep(max(0.0, started + place / PER_SECOND - time.perf_counter()))
            log.append([event])
        rate = round(PER_SECOND * seconds / (time.perf_counter() - started), 1)
        last = log.last_position()
        while writer.manifest.positions["log"] < last and runner.error is None:
            time.sleep(0.01)
        told.send({"documents_per_second": rate, "memory": resident()})


@contextmanager
def following(reader: Reader, swaps: list[float]) -> Iterator[None]:
    """Keep a reader fresh as the service does, and note how long each swap takes."""
    done = threading.Event()

    def follow() -> None:
        while not done.wait(PAUSE_SECONDS):
            before, started = reader.snapshot, time.perf_counter()
            if reader.refresh() is not before:
                swaps.append(time.perf_counter() - started)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def questions() -> Iterator[str]:
    """Names of the documents and what they may have done, without end."""
    return cycle([f"What did {event.title.rpartition(' ')[0]} repair that others left?" for event in documents(500, 1)])


def asked(reader: Reader, mode: str, question: str, taken: Taken, errors: list[str]) -> float:
    """Ask one question; returns the seconds it took."""
    started, cpu = time.perf_counter(), time.thread_time()
    try:
        retrieve(reader.snapshot, PIPELINE.embedder, question, mode=mode, k=10)
    except Exception as error:
        # Every kind counts: the promise is that none comes.
        errors.append(f"{mode}: {type(error).__name__}: {error}")
    taken[mode].append((time.perf_counter() - started, time.thread_time() - cpu))
    return taken[mode][-1][0]


def shown(taken: Taken) -> dict[str, Any]:
    """Of each mode the times, and the CPU time of the thread that asked: what is left when nobody else is there."""
    return {
        mode: {
            "asked": len(pairs),
            "ms": spread([pair[0] for pair in pairs]),
            "cpu_ms": spread([pair[1] for pair in pairs]),
        }
        for mode, pairs in taken.items()
    }


def measure(folder: Path, passages: int, seconds: float) -> dict[str, Any]:
    warm_up()
    here, there = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=write, args=(folder, passages, seconds, there))
    child.start()
    # Ours goes, so that its end shows here if the writer fails.
    there.close()
    built = here.recv()
    started = time.perf_counter()
    reader = Reader(Home(folder).incarnation("bench"))
    report: dict[str, Any] = {
        "index": built["counts"],
        "load_seconds": round(time.perf_counter() - started, 1),
        "reader_memory": resident(),
        "writer_memory": built["memory"],
    }
    texts, errors, swaps = questions(), list[str](), list[float]()
    for mode in MODES:
        asked(reader, mode, next(texts), defaultdict(list), errors)
    idle: Taken = defaultdict(list)
    for _ in range(QUESTIONS):
        for mode in MODES:
            asked(reader, mode, next(texts), idle, errors)
    busy: Taken = defaultdict(list)
    with following(reader, swaps):
        here.send("stream")
        for mode in cycle(MODES):
            elapsed = asked(reader, mode, next(texts), busy, errors)
            if here.poll():
                break
            # A steady asker: ten questions a second, however fast the answers come.
            time.sleep(max(0.0, 0.1 - elapsed))
        streamed = here.recv()
    child.join()
    return report | {
        "quiet_ms": shown(idle),
        "streaming_ms": shown(busy),
        "streamed_documents_per_second": streamed["documents_per_second"],
        "swaps": len(swaps),
        "swap_ms": spread(swaps),
        "reader_memory_after": resident(),
        "writer_memory_after": streamed["memory"],
        "errors": len(errors),
        "first_errors": errors[:3],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    # As the command does.
    keep_few_arenas()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long documents stream in")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        report = {
            "load_average": os.getloadavg()[0],
            "passages": options.passages,
            **measure(Path(folder), options.passages, options.seconds),
        }
    text = json.dumps(report, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
