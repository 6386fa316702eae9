"""Words at size: BM25 from the exact sums in memory, and phrases through full text against reading every row.

`python -m tests.bench.words [--passages N ...] [--out FILE]` prints JSON. Passages are 60 words drawn by Zipf's law
from 100,000, questions 8 words of a passage; so words are as common as in a text, and nothing else of it is real.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from index.graph.rows import SparseRows
from index.indexes import keep_words
from index.keys import halves, term_key
from index.numbers import Numbers
from index.phrases import holders
from index.snapshot import Snapshot
from index.text import terms
from index.types import Question
from query.modes.bm25 import BM25Mode

from .ingest import spread
from .nearest import megabytes, resident, took

LENGTH = 60
VOCABULARY = 100_000
EXPONENT = 1.1
QUESTIONS = 100
STOPPED = 150
"""The most frequent words, which a real question is rid of."""
LATER = 1_000
"""Passages that come after the indexes are made."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, nargs="+", default=[20_000])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report = {f"{count}_passages": measured(count) for count in given.passages}
    text = json.dumps(report, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


def measured(count: int) -> dict[str, Any]:
    random = np.random.default_rng(20_260)
    weights = 1 / np.arange(1, VOCABULARY + 1) ** EXPONENT
    drawn = random.choice(VOCABULARY, (count + LATER, LENGTH), p=weights / weights.sum())
    # Letters only, so that a stemmer finds nothing to cut and no word is a stop word.
    names = np.array(["q" + np.base_repr(number, 26).translate(_LETTERS) + "x" for number in range(VOCABULARY)])
    asked = [drawn[number, 20:28] for number in random.choice(count, QUESTIONS)]
    with TemporaryDirectory(prefix="gistream-") as folder:
        return {"bm25": bm25(drawn[:count], names, asked), "phrases": phrases(Path(folder), drawn, names, asked)}


_LETTERS = str.maketrans("0123456789ABCDEFGHIJKLMNOP", "abcdefghijklmnopqrstuvwxyz")


def bm25(drawn: NDArray[np.int64], names: NDArray[np.str_], asked: list[NDArray[np.int64]]) -> dict[str, Any]:
    before = resident()
    count = len(drawn)
    words = Numbers()
    words.assign(*halves([term_key(next(iter(terms(name)))) for name in names.tolist()]))
    passages = Numbers()
    passages.assign(*halves([term_key(str(number)) for number in range(count)]))
    numbered = np.repeat(np.arange(count), LENGTH)
    postings = SparseRows.from_entries(drawn.reshape(-1), numbered, np.ones(len(numbered), np.int64), VOCABULARY)
    snapshot = SimpleNamespace(
        kinds=SimpleNamespace(terms=words, passages=passages),
        manifest=SimpleNamespace(counts=SimpleNamespace(passages=count)),
        lengths=np.full(count, LENGTH),
        postings=postings,
    )
    held = round(resident() - before, 1)
    none = np.zeros(1)
    report: dict[str, Any] = {"postings": postings.n_base, "memory_megabytes": held}
    for name, least in (("question_of_8_words", 0), ("without_stop_words", STOPPED)):
        texts = [Question(" ".join(names[question[question >= least]]), none, none) for question in asked]
        times = [took(BM25Mode().rank, cast(Snapshot, snapshot), text, 10) for text in texts]
        report[f"{name}_ms"] = spread([seconds for seconds, _ in times])
        report[f"{name}_cpu_ms"] = spread([cpu for _, cpu in times])
    return report


def phrases(
    folder: Path, drawn: NDArray[np.int64], names: NDArray[np.str_], asked: list[NDArray[np.int64]]
) -> dict[str, Any]:
    def arrow(first: int, last: int) -> pa.Table:
        texts = [" ".join(names[row].tolist()) for row in drawn[first:last]]
        keys = [term_key(str(number)) for number in range(first, last)]
        columns = {"key": pa.array(keys, pa.binary(16)), "title": [""] * len(texts), "text": texts}
        return pa.table(columns)

    count = len(drawn) - LATER
    uri = str(folder / "passages.lance")
    dataset = lance.write_dataset(arrow(0, count), uri, max_rows_per_file=64_000)
    read_through = [took(holders, dataset, " ".join(names[question[:3]])) for question in asked[:3]]
    built, cpu = took(keep_words, dataset, max(count, 10**9))
    report = {
        "read_through_seconds": [round(seconds, 3) for seconds, _ in read_through],
        "train_seconds": round(built, 2),
        "train_cpu_seconds": round(cpu, 2),
        "index_megabytes": megabytes(folder / "passages.lance" / "_indices"),
        "text_megabytes": megabytes(folder / "passages.lance" / "data"),
    }
    three = [" ".join(names[question[:3]]) for question in asked]
    report["three_words_ms"] = spread([took(holders, dataset, phrase)[0] for phrase in three])
    dataset = lance.write_dataset(arrow(count, count + LATER), uri, mode="append")
    report["three_words_with_rows_not_indexed_ms"] = spread([took(holders, dataset, one)[0] for one in three])
    report["rows_not_indexed"] = LATER
    report["add_them_ms"] = round(1000 * took(keep_words, dataset, count)[0], 1)
    return report


if __name__ == "__main__":
    main()
