"""What the past and filters cost: opening older snapshots, filters while the index changes, memory.

`python -m tests.bench.time_travel [--passages N] [--out FILE]` prints JSON. Rules, hashing of 384 dimensions, no alias
edges, documents of five passages with metadata of their own; times are of this machine at this moment, so read ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from index.home import Home
from index.maintenance import Retention
from index.reader import Reader
from index.snapshot import Snapshot
from query.filters import Condition, Filter
from query.retrieve import retrieve
from streams.applier import Pace
from streams.local import Runner
from streams.log import Log

from .corpus import documents
from .ingest import PASSAGES_PER_DOCUMENT, PIPELINE

KEEPING = Pace(retention=Retention(every=timedelta(hours=24)))
QUESTION = "Who repaired the Harbour Mill?"
FEW, HALF = Filter(where={"number": Condition(below=20)}), Filter(where={"number": Condition(at_least=1000)})


def milliseconds(what: Callable[[], Any]) -> float:
    started = time.perf_counter()
    what()
    return round(1000 * (time.perf_counter() - started), 2)


def best(what: Callable[[], Any], times: int = 7) -> float:
    return min(milliseconds(what) for _ in range(times))


def megabytes() -> float:
    """Memory of this process that is in use now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def filters(snapshot: Snapshot, changed: Snapshot) -> dict[str, Any]:
    """A namespace's first filter, the next ones, and the first after a commit; then the ranking with and without."""
    told: dict[str, Any] = {
        "first_filter_ms": milliseconds(lambda: FEW.mask(snapshot)),
        "same_filter_ms": best(lambda: FEW.mask(snapshot)),
        "new_filter_ms": milliseconds(lambda: HALF.mask(snapshot)),
        "same_filter_after_a_commit_ms": milliseconds(lambda: HALF.mask(changed)),
    }
    for mode in ("cogito", "dense", "bm25", "hybrid"):
        for name, filter in (("none", Filter()), ("few", FEW), ("many", HALF)):

            def ask(mode: str = mode, filter: Filter = filter) -> None:
                retrieve(changed, PIPELINE.embedder, QUESTION, mode=mode, eligible=filter.mask(changed))

            told[f"{mode}_filter_{name}_ms"] = best(ask)
    return told


def past(folder: Path, numbers: dict[str, int]) -> dict[str, Any]:
    started = megabytes()
    reader: list[Reader] = []
    told: dict[str, Any] = {"open_newest_ms": milliseconds(lambda: reader.append(Reader(folder)))}
    told["newest_mb"] = round(megabytes() - started)
    held = []
    for name, number in numbers.items():
        before, manifest = megabytes(), reader[0].manifests.read(number)
        told[f"open_{name}_ms"] = milliseconds(lambda manifest=manifest: held.append(reader[0].older(manifest)))  # type: ignore[misc]
        told[f"{name}_mb"] = round(megabytes() - before)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    count = arguments.passages // PASSAGES_PER_DOCUMENT
    with TemporaryDirectory() as data:
        folder = Path(data)
        home = Home(folder)
        with Log(folder / "log.db") as log, Runner(home, log, PIPELINE, pace=KEEPING) as runner:
            numbers = {}
            sent = 0
            for name, share in (("half_ago", 0.5), ("tenth_ago", 0.9), ("hundredth_ago", 0.99), ("newest", 1.0)):
                log.append(list(documents(round(count * share) - sent, PASSAGES_PER_DOCUMENT, start=sent)))
                sent = round(count * share)
                runner.drain()
                numbers[name] = Reader(home.incarnation("bench")).manifests.numbers()[-1]
            reader = Reader(home.incarnation("bench"))
            snapshot = reader.snapshot
            log.append(list(documents(1, 1, start=count)))
            runner.drain()
            report = {
                "load_average": os.getloadavg()[0],
                "passages": snapshot.manifest.counts.passages,
                "documents": snapshot.manifest.counts.documents,
                "filters": filters(snapshot, reader.refresh()),
            }
            del reader, snapshot
            ago = {name: number for name, number in numbers.items() if name != "newest"}
            one = {"one_commit_ago": numbers["newest"]}
            report["past"] = past(home.incarnation("bench"), one | dict(reversed(ago.items())))
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
