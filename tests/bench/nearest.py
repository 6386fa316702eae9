"""Approximate vector search against exact: what it finds, how long it takes, and what its index costs to keep.

`python -m tests.bench.nearest [--vectors DIR] [--rows N ...] [--out FILE]` prints JSON. DIR holds `questions.npz` and
any other .npz files of rows, each an array `vec` (n, d) of unit vectors; the rows are shuffled and the first N are
used. Without DIR they are hashed sentences of the benchmark's corpus, which are far easier than those of a model. Set
OPENBLAS_NUM_THREADS=1, as the command does.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from index import stored as stored_module
from index.cosine import Vectors
from index.indexes import keep_keys, keep_nearest
from index.keys import halves
from index.models.hashing import HashingEmbedder
from index.numbers import Numbers
from index.stored import StoredVectors
from index.tables import open_dataset
from index.vectors import VectorTable

from .corpus import documents
from .ingest import spread

Matrix = NDArray[np.float32]
QUESTIONS = 200
CUTS = (10, 200)
LATER = 20
"""Batches of rows, at most, that come after the index is made."""
BATCH = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows, questions = hashed(max(given.rows)) if given.vectors is None else loaded(given.vectors)
    report: dict[str, Any] = {
        "vectors": "hashed sentences" if given.vectors is None else "given",
        "distinct_rows_there": len(rows),
        "questions": len(questions),
        "dimensions": rows.shape[1],
    }
    for count in given.rows:
        if count + BATCH > len(rows):
            parser.error(f"{count} rows and {BATCH} later ones are more than the {len(rows)} there are")
        with TemporaryDirectory(prefix="gistream-") as folder:
            report[f"{count}_rows"] = measured(Path(folder), rows[: count + LATER * BATCH], questions, count)
    text = json.dumps(report, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


def hashed(count: int) -> tuple[Matrix, Matrix]:
    texts = [event.text for event in documents(count // 4 + LATER * BATCH, 5)]
    sentences = list(dict.fromkeys(part for text in texts for part in re.split(r"(?<=\.) ", text)))
    vectors = HashingEmbedder().embed(sentences[: count + LATER * BATCH + QUESTIONS])
    return vectors[QUESTIONS:], vectors[:QUESTIONS]


def loaded(folder: Path) -> tuple[Matrix, Matrix]:
    files = sorted(path for path in folder.glob("*.npz") if path.name != "questions.npz")
    rows = np.concatenate([np.load(path)["vec"] for path in files])
    _, first = np.unique(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))), return_index=True)
    rows = rows[np.random.default_rng(20_260).permutation(first)]
    questions = np.load(folder / "questions.npz")["vec"]
    questions = questions[np.random.default_rng(20_261).permutation(len(questions))[:QUESTIONS]]
    return unit(rows), unit(questions)


def unit(matrix: NDArray[Any]) -> Matrix:
    matrix = matrix.astype(np.float32)
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), np.float32)


def measured(folder: Path, rows: Matrix, questions: Matrix, count: int) -> dict[str, Any]:
    keys = [blake2b(number.to_bytes(8), digest_size=16).digest() for number in range(len(rows))]
    numbers = Numbers()
    numbers.assign(*halves(keys))

    def arrow(first: int, last: int) -> pa.Table:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows[first:last].reshape(-1)), rows.shape[1])
        return pa.table({"key": pa.array(keys[first:last], pa.binary(16)), "vector": vectors})

    def stored(dataset: Any) -> StoredVectors:
        live = np.arange(len(rows)) < dataset.count_rows()
        return StoredVectors(open_dataset(folder, "vectors", dataset.version), numbers, live)

    uri = str(folder / "vectors.lance")
    dataset = lance.write_dataset(arrow(0, count), uri, max_rows_per_file=64_000)
    keep_keys(dataset)
    built, cpu = took(keep_nearest, dataset, count, 0)
    report: dict[str, Any] = {
        "train_seconds": round(built, 2),
        "train_cpu_seconds": round(cpu, 2),
        "index_megabytes": megabytes(folder / "vectors.lance" / "_indices"),
        "table_megabytes": megabytes(folder / "vectors.lance" / "data"),
    }
    table = stored(dataset)
    ask(table, questions[:20], 10)
    cosines = questions.astype(np.float64)
    report["in_the_table"] = {f"k{k}_ms": ask(table, questions, k) for k in (5, *CUTS)}
    report["in_the_table"]["exact_cosines_of_200_ms"] = spread(
        [took(table.scores, chosen(count, 200), q)[0] for q in cosines[:50]]
    )
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        memory_of = fresh.submit(reading, folder, dataset.version, numbers.keys[:count], questions)
        report["in_the_table"]["memory_megabytes"] = memory_of.result()

    before = resident()
    memory = VectorTable.empty(rows.shape[1]).extend(np.arange(count), rows[:count])
    report["in_memory"] = {f"k{k}_ms": ask(memory, questions, k) for k in CUTS}
    report["in_memory"]["memory_megabytes"] = round(resident() - before, 1)
    exact = {k: answers(memory, cosines, k) for k in CUTS}
    report["recall"] = {f"at_{k}": recall(table, exact[k], cosines, k) for k in CUTS}
    report["recall_at_10_by_share_probed"] = {}
    for share in (0.25, 0.5, 0.75, 1.0):
        with patch.multiple(stored_module, PROBED=share, LEAST_PROBED=1):
            found, times = recall(table, exact[10], cosines, 10), ask(table, questions[:50], 10)
        report["recall_at_10_by_share_probed"][share] = {
            "recall": found,
            "p50_ms": times["p50"],
            "cpu_ms": times["cpu"],
        }

    upkeep, late = [], []
    batches = (len(rows) - count) // BATCH
    for number in range(batches):
        first = count + number * BATCH
        dataset = lance.write_dataset(arrow(first, first + BATCH), uri, mode="append")
        late.append(ask(stored(dataset), questions[:10], 10)["p50"])
        upkeep.append(took(keep_nearest, dataset, dataset.count_rows(), 0))
        memory = memory.extend(np.arange(first, first + BATCH), rows[first : first + BATCH])
    table = stored(dataset)
    report["after_later_batches"] = {
        "batches": batches,
        "rows_each": BATCH,
        "upkeep_ms": spread([seconds for seconds, _ in upkeep]),
        "upkeep_cpu_seconds_in_all": round(sum(cpu for _, cpu in upkeep), 2),
        "search_with_a_batch_not_indexed_ms": round(median(late), 2),
        "deltas": len(dataset.stats.index_stats("vector_idx")["indices"]),
        "k10_ms": ask(table, questions, 10),
        "recall_at_10": recall(table, answers(memory, cosines, 10), cosines, 10),
    }
    return report


def reading(folder: Path, version: int, keys: list[bytes], questions: Matrix) -> float:
    """Megabytes by which a process grows that has only the numbers of the rows, and asks all questions."""
    numbers = Numbers()
    numbers.assign(*halves(keys))
    before = resident()
    ask(StoredVectors(open_dataset(folder, "vectors", version), numbers, np.ones(len(keys), np.bool_)), questions, 10)
    return round(resident() - before, 1)


def ask(vectors: Vectors, questions: Matrix, k: int) -> dict[str, float]:
    """Milliseconds a question by the clock, and of the processor on average: the clock also shows what else runs."""
    times = [took(vectors.search, q, k) for q in questions.astype(np.float64)]
    return {**spread([seconds for seconds, _ in times]), "cpu": round(1000 * fmean(cpu for _, cpu in times), 2)}


Answers = list[NDArray[np.int64]]


def answers(vectors: Vectors, questions: NDArray[np.float64], k: int) -> Answers:
    return [vectors.search(q, k)[0][:k] for q in questions]


def recall(vectors: Vectors, exact: Answers, questions: NDArray[np.float64], k: int) -> float:
    found = answers(vectors, questions, k)
    shares = [len(np.intersect1d(ours, theirs)) / k for ours, theirs in zip(found, exact, strict=True)]
    return round(float(np.mean(shares)), 4)


def chosen(count: int, some: int) -> NDArray[np.int64]:
    return np.random.default_rng(some).choice(count, some, replace=False)


def took(work: Callable[..., Any], *given: Any) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    started, cpu = time.perf_counter(), time.process_time()
    work(*given)
    return time.perf_counter() - started, time.process_time() - cpu


def resident() -> float:
    """Megabytes of memory that the process has."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def megabytes(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20, 1)


if __name__ == "__main__":
    main()
