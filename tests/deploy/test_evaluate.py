"""`gistream eval` on small question sets: what it ranks, scores, keeps, refuses and asks an endpoint for."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deploy.evaluate import run
from deploy.exits import Exit
from deploy.kit import Kit
from index.home import Home
from index.models.hashing import HashingEmbedder
from query.retrieve import MODES
from streams.chunk import WHOLE
from streams.extract.rules import RulesExtractor
from streams.pipeline import Pipeline
from tests.index.embedding_endpoint import serving, vector

from .terminal import Terminal

DIMENSIONS = 16
SENTENCES = {
    "p1": ("Orla Quist", "Orla Quist built the lighthouse of Harrow Point."),
    "p2": ("Harrow Point", "Harrow Point lies on the island of Sund."),
    "p3": ("Sund", "Sund is ruled from the town of Velde."),
    "p4": ("Velde", "Velde holds a market for glass."),
    "p5": ("", "Nobody fishes in the bay in winter."),
    "p6": ("Pim Aster", "Pim Aster sold glass in Velde."),
    "p7": ("Glass", "Glass is made of sand and ash."),
}
TRIPLES = {
    "p1": [("Orla Quist", "built", "lighthouse"), ("lighthouse", "stands at", "Harrow  Point")],
    "p2": [("Harrow Point", "lies on", "Sund")],
    "p3": [("Sund", "is ruled from", "Velde")],
    "p4": [("Velde", "sells", "glass")],
    "p6": [("Pim Aster", "sold", "glass")],
}
QUESTIONS: list[dict[str, Any]] = [
    {"id": "q1", "question": "Who rules the island of Harrow Point?", "gold": ["p2", "p3"]},
    {"id": "q2", "question": "What did Pim Aster sell?", "gold": ["p6"]},
    {"id": "q3", "question": "When is the moon full?"},
]
PASSAGES = [{"id": id, "title": title, "text": text} for id, (title, text) in SENTENCES.items()]
EMBEDDED = [f"{title}\n{text}" if title else text for title, text in SENTENCES.values()]
ASKED = [question["question"] for question in QUESTIONS]
HEARD = [
    text for triples in TRIPLES.values() for triple in triples for text in (triple[0], triple[2], " ".join(triple))
]


def embedding(text: str) -> list[float]:
    """The test endpoint as a model to which white space means nothing."""
    return vector(" ".join(text.split()), DIMENSIONS)


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def record(path: Path, texts: Sequence[str]) -> None:
    """The embeddings of `texts`, as a question set holds them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = sorted((hashlib.sha256(text.encode()).digest(), row) for row, text in enumerate(dict.fromkeys(texts)))
    np.savez(
        path,
        keys=np.frombuffer(b"".join(key for key, _ in keys), dtype=np.uint8).reshape(-1, 32),
        row=np.array([row for _, row in keys], dtype=np.int32),
        vec=np.array([embedding(text) for text in dict.fromkeys(texts)], dtype=np.float32),
    )


@pytest.fixture
def quay(tmp_path: Path) -> Path:
    """A set whose gold names passages; everything that it takes is recorded."""
    folder = tmp_path / "sets" / "quay"
    write_rows(folder / "passages.jsonl.gz", PASSAGES)
    write_rows(folder / "questions.jsonl.gz", QUESTIONS)
    rows = [{"id": id, "triples": triples} for id, triples in TRIPLES.items()]
    unread = [{"id": id, "triples": []} for id in SENTENCES.keys() - TRIPLES.keys()]
    write_rows(folder / "extractions_hand.jsonl.gz", rows + unread)
    record(folder.parent / "embeddings/quay.passages.npz", EMBEDDED + ASKED)
    record(folder.parent / "embeddings/quay.facts.npz", HEARD)
    return folder


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """A set whose gold names documents, each cut into several passages with a time."""
    folder = tmp_path / "sets" / "chats"
    rows = [
        {"id": f"{day}#{part}", "doc_id": day, "timestamp": f"2026-03-{day}T08:00", "text": f"{text} Part {part}."}
        for day, text in (("01", "Ida: the kiln is cold."), ("02", "Jon: glass broke."), ("03", "Ida: Velde is far."))
        for part in range(3)
    ]
    write_rows(folder / "passages.jsonl.gz", rows)
    questions = [{"id": "c1", "question": "Whose kiln is cold?", "gold_docs": ["01"]}, {"id": "c2", "question": "Why?"}]
    write_rows(folder / "questions.jsonl.gz", questions)
    return folder


def evaluated(gistream: Terminal, kit: Path, *options: str) -> Any:
    return gistream.ok("eval", "--kit", str(kit), "--json", *options).json


def ranked(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def unit(texts: Sequence[str]) -> Any:
    vectors = np.array([embedding(text) for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


HAND = ("--extractor", "recorded:hand")


def test_dense_ranks_by_the_recorded_vectors_and_is_scored_by_gold(
    gistream: Terminal, quay: Path, tmp_path: Path
) -> None:
    figures = evaluated(gistream, quay, *HAND, "--mode", "dense", "--ranks", str(tmp_path / "ranks"))
    order = np.argsort(-(unit(ASKED) @ unit(EMBEDDED).T), axis=1)
    expected = [[list(SENTENCES)[passage] for passage in row] for row in order]
    assert ranked(tmp_path / "ranks") == [
        {"qid": question["id"], "top": top} for question, top in zip(QUESTIONS, expected, strict=True)
    ]
    found = [len({"p2", "p3"} & set(expected[0][:k])) / 2 + ("p6" in expected[1][:k]) for k in (2, 5, 10)]
    dense = figures["modes"]["dense"]
    assert [dense[f"recall@{k}"] for k in (2, 5, 10)] == [50 * share for share in found]
    assert dense["all@5"] == 50 * (({"p2", "p3"} <= set(expected[0][:5])) + ("p6" in expected[1][:5]))
    assert (figures["questions"], figures["scored"]) == (3, 2)
    assert figures["index"] == {"documents": 7, "passages": 7, "entities": 7, "facts": 6}
    assert figures["ingest"]["reused"] is False
    assert not (tmp_path / "data").exists()


def test_gold_may_name_documents_of_several_passages(gistream: Terminal, chats: Path, tmp_path: Path) -> None:
    options = ("--embedder", "hashing", "--mode", "bm25", "--ranks", str(tmp_path / "ranks"))
    figures = evaluated(gistream, chats, *options, "--data", str(tmp_path / "kept"))
    top = ranked(tmp_path / "ranks")[0]["top"]
    assert top[0] == "01"
    assert len(set(top)) == len(top)
    assert figures["modes"]["bm25"]["recall@2"] == 100.0
    assert (figures["questions"], figures["scored"]) == (2, 1)
    assert Home(tmp_path / "kept").names() == ["chats"]


def test_several_modes_share_one_index_and_their_rankings_say_whose_they_are(
    gistream: Terminal, quay: Path, tmp_path: Path
) -> None:
    options = (*HAND, "--mode", "cogito", "--mode", "bm25", "--limit", "2", "--ranks", str(tmp_path / "ranks"))
    figures = evaluated(gistream, quay, *options)
    assert list(figures["modes"]) == ["cogito", "bm25"]
    rows = ranked(tmp_path / "ranks")
    assert [(row["mode"], row["qid"]) for row in rows] == [(m, q) for m in ("cogito", "bm25") for q in ("q1", "q2")]
    assert rows[-1]["top"][0] == "p6"
    printed = gistream.ok("eval", "--kit", str(quay), *options, "--profile", "paper").out
    assert "recall@5" in printed and "cogito" in printed and "bm25" in printed


def test_an_index_is_kept_until_passages_or_parts_change(gistream: Terminal, quay: Path, tmp_path: Path) -> None:
    def again(*options: str) -> tuple[bool, dict[str, int], list[dict[str, Any]]]:
        kept = ("--mode", "bm25", "--data", str(tmp_path / "kept"), "--ranks", str(tmp_path / "ranks"))
        figures = evaluated(gistream, quay, *kept, *options)
        return figures["ingest"]["reused"], figures["index"], ranked(tmp_path / "ranks")

    first = again(*HAND)
    assert again(*HAND) == (True, *first[1:])
    assert again("--embedder", "hashing")[0] is False
    assert again(*HAND) == first
    write_rows(quay / "passages.jsonl.gz", PASSAGES[:-1])
    reused, counts, _ = again("--embedder", "hashing")
    assert (reused, counts["passages"]) == (False, 6)


def test_an_evaluation_that_was_cut_short_is_not_reused(chats: Path, tmp_path: Path) -> None:
    def cut(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    kit, modes = Kit.load(chats), {"bm25": MODES["bm25"]}
    one, other = (Pipeline(WHOLE, RulesExtractor(), HashingEmbedder(dimensions)) for dimensions in (32, 64))
    assert run(kit, modes, one, tmp_path / "kept").figures["ingest"]["reused"] is False
    with pytest.raises(KeyboardInterrupt):
        run(kit, modes, other, tmp_path / "kept", cut)
    assert run(kit, modes, one, tmp_path / "kept").figures["ingest"]["reused"] is False
    assert run(kit, modes, one, tmp_path / "kept").figures["ingest"]["reused"] is True


def test_a_namespace_that_no_evaluation_made_is_left_alone(gistream: Terminal, quay: Path) -> None:
    gistream.ok("ingest", "quay", "-", stdin=json.dumps({"id": "mine", "text": "Keep me."}))
    ended = gistream("eval", "--kit", str(quay), "--embedder", "hashing", "--data", str(gistream.data))
    assert ended.code == Exit.USAGE
    assert "was not made by an evaluation" in ended.err
    assert "Keep me." in gistream.ok("search", "quay", "keep", "--mode", "bm25", "--json").out


def test_everything_that_is_not_recorded_is_counted_in_one_error(
    gistream: Terminal, quay: Path, tmp_path: Path
) -> None:
    record(quay.parent / "embeddings/quay.passages.npz", EMBEDDED[1:] + ASKED[1:])
    record(quay.parent / "embeddings/quay.facts.npz", [text for text in HEARD if text != "Velde sells glass"])
    ended = gistream("eval", "--kit", str(quay), *HAND, "--mode", "bm25", "--data", str(tmp_path / "kept"))
    assert ended.code == Exit.MODEL
    assert ended.err.startswith("gistream: 3 of ")
    assert "GISTREAM_EMBEDDING_BASE_URL" in ended.err and ended.err.count("\n") == 1
    assert not (tmp_path / "kept").exists()


def test_an_endpoint_is_asked_for_what_is_not_recorded_and_nothing_else(
    gistream: Terminal, quay: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (*HAND, "--mode", "cogito", "--mode", "dense", "--ranks", str(tmp_path / "ranks"))
    evaluated(gistream, quay, *options)
    recorded = ranked(tmp_path / "ranks")
    (quay.parent / "embeddings/quay.facts.npz").unlink()
    with serving() as endpoint:
        monkeypatch.setenv("GISTREAM_EMBEDDING_BASE_URL", endpoint.url)
        monkeypatch.setenv("GISTREAM_EMBEDDING_DIMENSIONS", str(DIMENSIONS))
        evaluated(gistream, quay, *options)
    assert ranked(tmp_path / "ranks") == recorded
    cleaned = {" ".join(text.split()) for text in HEARD}
    assert set(endpoint.sent()) == cleaned
    assert len(endpoint.sent()) == len(cleaned)


def test_a_passage_that_cannot_be_indexed_is_named(gistream: Terminal, quay: Path) -> None:
    write_rows(quay / "passages.jsonl.gz", [*PASSAGES, {"id": "x" * 600, "text": "A name that is too long."}])
    ended = gistream("eval", "--kit", str(quay), "--embedder", "hashing")
    assert ended.code == Exit.REFUSED
    assert "Traceback" not in ended.err and "xxx" in ended.err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--extractor", "magic"), Exit.USAGE, "no extractor 'magic'. use rules or recorded:NAME"),
        (("--extractor", "recorded:"), Exit.USAGE, "no extractor 'recorded:'"),
        (("--extractor", "recorded:nobody"), Exit.MODEL, "extractions_nobody.jsonl.gz"),
        (("--embedder", "magic"), Exit.USAGE, "no embedder 'magic'. use recorded, hashing, local or openai"),
        (("--embedder", "recorded"), Exit.NOT_FOUND, "no recorded vectors of"),
    ],
)
def test_a_part_that_is_not_there_is_named(
    options: tuple[str, ...], code: Exit, said: str, gistream: Terminal, chats: Path
) -> None:
    ended = gistream("eval", "--kit", str(chats), *options)
    assert ended.code == code
    assert said in ended.err


@pytest.mark.kit
def test_dense_ranks_as_the_baseline_of_the_kit(kit: Path, gistream: Terminal, tmp_path: Path) -> None:
    folder = kit / "musique_train"
    options = ("--extractor", "recorded:gpt35", "--limit", "20", "--ranks", str(tmp_path / "ranks"))
    evaluated(gistream, folder, "--mode", "dense", *options)
    with gzip.open(folder / "baselines.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    baseline = {row["qid"]: row["top"] for row in rows if row["system"] == "dense_minilm"}
    found = ranked(tmp_path / "ranks")
    assert len(found) == 20
    assert [row["top"] for row in found] == [baseline[row["qid"]] for row in found]
