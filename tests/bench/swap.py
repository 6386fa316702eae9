"""How long does a reader take to swap to a newer snapshot when its graph has a million nodes?

`python -m tests.bench.swap [--nodes N] [--out FILE]` prints JSON. Graph and words are random, with as many entries as
real text has; then documents are committed one by one, and each swap is timed. Before the last of them comes a delta so
large that the reader makes its bases anew, which must not hold up the swaps.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deploy.warm import warm_up
from index.graph.incidence import Incidence, Words
from index.graph.segment import Relation, Segment, write_segment
from index.home import Home
from index.keys import whole
from index.manifest import Counts
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.records import TableName
from index.types import Accepted
from index.writer import Writer
from streams.apply import apply
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.pipeline import Pipeline, open_namespace

from .corpus import documents
from .ingest import spread

DIMENSIONS = 384
EMBEDDER = HashingEmbedder(DIMENSIONS)
PIPELINE = Pipeline(CONTENT, RulesExtractor(), EMBEDDER, alias_edges=False)
SWAPS = 60

Keys = tuple[Words, Words]


def keys(count: int, random: np.random.Generator) -> Keys:
    high, low = random.integers(0, 2**64, (2, count), dtype=np.uint64)
    return high, low


def incidence(rows: Keys, cols: Keys, pairs: NDArray[np.int64], weight: int = 1) -> Incidence:
    """Entries of weight `weight` at pairs (m, 2) of places among the keys."""
    (rh, rl), (ch, cl) = rows, cols
    a, b = np.unique(pairs, axis=0).T
    order = np.lexsort((cl[b], ch[b], rl[a], rh[a]))
    a, b = a[order], b[order]
    return Incidence(rh[a], rl[a], ch[b], cl[b], np.full(len(a), weight, np.int64), pa.nulls(len(a), pa.string()))


def popular(random: np.random.Generator, among: int, count: int) -> NDArray[np.int64]:
    """Places among things of which some are common and most are rare."""
    drawn: NDArray[np.int64] = (random.random(count) ** 2 * among).astype(np.int64)
    return drawn


def rows(writer: Writer, table: TableName, given: dict[str, Any], count: int, random: np.random.Generator) -> pa.Table:
    """Rows of a table with random vectors; what is not given is empty."""
    vectors = random.standard_normal((count, DIMENSIONS), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    given["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS)
    schema = writer.tables.schemas[table]
    return pa.table([given[f.name] if f.name in given else pa.nulls(count, f.type) for f in schema], schema=schema)


def grow(writer: Writer, entities: int, entries: int, passages: int, random: np.random.Generator) -> None:
    """Commit so many random entities and passages, and half as many pairs in the graph as it gets entries."""
    ours, theirs, words, facts = (keys(n, random) for n in (entities, passages, 2 * passages, 3 * passages))
    pairs, mentions = entries // 2, entries // 8
    ends = np.sort(np.stack([popular(random, entities, pairs - mentions) for _ in range(2)], axis=1), axis=1)
    mentioned = np.stack([popular(random, entities, mentions), random.integers(0, passages, mentions)], axis=1)
    terms = np.stack([popular(random, 2 * passages, 60 * passages), np.repeat(np.arange(passages), 60)], axis=1)
    supports = np.stack([np.arange(3 * passages), np.arange(3 * passages) % passages], axis=1)
    itself = {n: np.stack([np.arange(n)] * 2, axis=1) for n in (passages, 3 * passages)}
    segment = Segment(
        {
            Relation.LINKS: incidence(ours, ours, ends[ends[:, 0] < ends[:, 1]]),
            Relation.MENTIONS: incidence(ours, theirs, mentioned),
            Relation.TERMS: incidence(words, theirs, terms),
            Relation.SUPPORTS: incidence(facts, theirs, supports),
            Relation.PASSAGES: incidence(theirs, theirs, itself[passages]),
            Relation.FACTS: incidence(facts, facts, itself[3 * passages]),
        }
    )
    heads, tails = (
        pa.array(whole(ours[0][at], ours[1][at]), pa.binary(16))
        for at in (random.integers(0, entities, 3 * passages) for _ in range(2))
    )
    listed = {"key": pa.array(whole(*theirs), pa.binary(16))}
    writer.tables.add("passages", rows(writer, "passages", listed, passages, random))
    listed = {"key": pa.array(whole(*facts), pa.binary(16)), "head": heads, "tail": tails}
    writer.tables.add("facts", rows(writer, "facts", listed, 3 * passages, random))
    before, name = writer.manifest, f"{writer.manifest.number + 1:020d}-{writer.manifest.epoch}-bench.arrow"
    file = write_segment(writer.folder / "segments", name, segment)
    counts = Counts(
        passages=before.counts.passages + passages,
        entities=before.counts.entities + entities,
        facts=before.counts.facts + 3 * passages,
    )
    # The writer itself goes on without these sums: it would look up votes in them, and there are none.
    writer._commit(cause="batch", segments=(*before.segments, file), delta=file, counts=counts)


def swaps(writer: Writer, reader: Reader, first: int, count: int) -> dict[str, Any]:
    """Milliseconds of each swap over one more document, and CPU time of the thread that swaps."""
    taken, busy = [], []
    for number, event in enumerate(documents(count, 1, start=first)):
        position = first + number + 1
        accepted = Accepted(position, position, event.model_copy(update={"version": 1}), {"log": position})
        apply(writer, "bench", [accepted], CONTENT, PIPELINE.extractor.extract)
        started, cpu = time.perf_counter(), time.thread_time()
        snapshot = reader.refresh()
        taken.append(time.perf_counter() - started)
        busy.append(time.thread_time() - cpu)
        assert snapshot.manifest.number == writer.manifest.number
    return {"ms": spread(taken), "cpu_ms": spread(busy)}


def memory() -> float:
    """Resident GB of this process: writer and reader together."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e9


def measure(folder: Path, nodes: int, entries: int) -> dict[str, Any]:
    warm_up()
    random = np.random.default_rng(20_261_103)
    writer = open_namespace(Home(folder), "bench", PIPELINE).writer
    grow(writer, nodes - nodes // 10, entries, nodes // 10, random)
    started = time.perf_counter()
    reader = Reader(writer.folder)
    loading = time.perf_counter() - started
    report: dict[str, Any] = {
        "nodes": nodes,
        "graph_entries": reader.snapshot.graph.n_base,
        "postings": reader.snapshot.postings.n_base,
        "vectors": reader.snapshot.passages.n_live + reader.snapshot.facts.n_live,
        "load_seconds": round(loading, 1),
        "resident_gb": round(memory(), 2),
        "swap": swaps(writer, reader, 0, SWAPS),
    }
    grow(writer, nodes // 2, entries * 6 // 10, nodes // 20, random)
    started = time.perf_counter()
    reader.refresh()
    report["swap_over_a_large_delta_seconds"] = round(time.perf_counter() - started, 2)
    report["swap_while_bases_are_made_anew"] = swaps(writer, reader, SWAPS, 3 * SWAPS)
    report["entries_outside_the_base_after"] = reader.snapshot.graph.n_delta
    report["peak_resident_gb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000, help="nodes of the graph, with 14 entries each")
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        report = {"load_average": os.getloadavg()[0], **measure(Path(folder), options.nodes, 14 * options.nodes)}
    text = json.dumps(report, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
