"""Tests of the understanding: no text is embedded or read twice, and what is kept survives torn files."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from index import kept, understanding
from index.errors import StoreError
from index.home import Home
from index.kept import Kept
from index.models.hashing import HashingEmbedder
from index.types import Extraction, Role, Triple
from index.understanding import ANSWERS, TABLE, Understanding, inherit

D = 8
SPAWN = multiprocessing.get_context("spawn")


class Counting(HashingEmbedder):
    """Notes what it is asked to embed, call by call."""

    remote = True

    def __init__(self) -> None:
        super().__init__(D)
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        self.calls.append(list(texts))
        return super().embed(texts, role)


def said_of(title: str, text: str) -> Extraction:
    return Extraction(f"{title}: {text}", (text,), (Triple(title, "says", text),))


batches = st.lists(st.lists(st.sampled_from(["one", "two", "three", "zwölf", "", "'\0"]), max_size=6), max_size=4)


@given(batches)
def test_every_text_is_embedded_once(tmp_path_factory: pytest.TempPathFactory, asked: list[list[str]]) -> None:
    known, embedder = Understanding(tmp_path_factory.mktemp("known")), Counting()
    for texts in asked:
        vectors = known.vectors(texts, embedder)
        assert vectors.shape == (len(texts), D) and vectors.dtype == np.float32
        assert np.array_equal(vectors, HashingEmbedder(D).embed(texts))
    bought = [text for call in embedder.calls for text in call]
    assert sorted(bought) == sorted({text for texts in asked for text in texts})
    assert [] not in embedder.calls, "nothing new is no call"


def test_what_two_processes_do_at_once_both_see(tmp_path: Path) -> None:
    one, two = Understanding(tmp_path), Understanding(tmp_path)
    one.vectors(["one"], Counting())
    again = Counting()
    two.vectors(["one", "two"], again)
    assert again.calls == [["two"]]
    one.keep(ONE, "reader", said_of(*ONE))
    assert two.said([ONE], "reader") == [None], "a file belongs to its process"
    one.gather()
    assert two.said([ONE], "reader") == [said_of(*ONE)]


def test_what_was_bought_outlives_the_process_and_belongs_to_its_model(tmp_path: Path) -> None:
    embedder = Counting()
    first = Understanding(tmp_path)
    first.vectors(["one"], embedder)
    again = Understanding(tmp_path)
    assert np.array_equal(again.vectors(["one"], embedder), HashingEmbedder(D).embed(["one"]))
    assert embedder.calls == [["one"]]

    other = Counting()
    other.fingerprint = "another model"
    again.vectors(["one"], other)
    assert other.calls == [["one"]]


ONE, TWO = ("T", "one"), ("", "two")


@pytest.mark.parametrize("gathered", [False, True], ids=["in the file", "in the table"])
def test_what_was_said_outlives_the_process_and_belongs_to_its_extractor(tmp_path: Path, gathered: bool) -> None:
    first = Understanding(tmp_path)
    assert first.said([ONE, TWO], "reader") == [None, None]
    first.keep(ONE, "reader", said_of(*ONE))
    if gathered:
        first.gather()
    assert first.said([ONE], "reader") == [said_of(*ONE)]
    # What is left of a killed process.
    first.release()
    known = Understanding(tmp_path)
    assert known.said([TWO, ONE, ONE], "reader") == [None, said_of(*ONE), said_of(*ONE)]
    assert known.said([ONE], "other reader") == [None]
    assert known.said([("U", "one")], "reader") == [None], "the title is read too"


def test_many_answers_become_one_piece_of_the_table(tmp_path: Path) -> None:
    known = Understanding(tmp_path)
    known.said([ONE], "reader")
    before = lance.dataset(str(tmp_path / f"{TABLE}.lance")).version
    for number in range(10):
        known.keep(("", str(number)), "reader", said_of("", str(number)))
    known.keep(("", "3"), "reader", said_of("", "3"))
    known.gather()
    known.gather()
    table = lance.dataset(str(tmp_path / f"{TABLE}.lance"))
    assert (table.version, table.count_rows()) == (before + 1, 10)
    assert list((tmp_path / ANSWERS).iterdir()) == []


def test_an_answer_that_comes_while_others_are_gathered_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Understanding(tmp_path)
    known.keep(ONE, "reader", said_of(*ONE))
    add_rows = Kept.add

    def late(table: Kept, *rows: Any) -> None:
        known.keep(TWO, "reader", said_of(*TWO))
        add_rows(table, *rows)

    with monkeypatch.context() as patched:
        patched.setattr(Kept, "add", late)
        known.gather()
    known.release()
    assert Understanding(tmp_path).said([ONE, TWO], "reader") == [said_of(*ONE), said_of(*TWO)]


def test_duplicates_of_two_workers_are_harmless(tmp_path: Path) -> None:
    workers = Understanding(tmp_path), Understanding(tmp_path)
    fresh = workers[0]
    workers[0].vectors(["one", "two"], Counting())

    class Late(Counting):
        def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
            fresh.vectors(["three"], Counting())
            return super().embed(texts, role)

    workers[1].vectors(["two", "three"], Late())
    assert np.array_equal(workers[0].vectors(["three"], Counting()), HashingEmbedder(D).embed(["three"]))


def test_models_of_other_lengths_keep_their_own_vectors(tmp_path: Path) -> None:
    Understanding(tmp_path).vectors(["one"], Counting())
    longer = HashingEmbedder(2 * D)
    assert np.array_equal(Understanding(tmp_path).vectors(["one"], longer), longer.embed(["one"]))
    again = Counting()
    Understanding(tmp_path).vectors(["one"], again)
    assert again.calls == []


@pytest.mark.parametrize("torn", [1, 9])
def test_torn_newest_versions_cost_only_what_was_in_them(tmp_path: Path, torn: int) -> None:
    known, embedder = Understanding(tmp_path), Counting()
    for text in ("one", "two", "three"):
        known.vectors([text], embedder)
    for path in sorted((tmp_path / f"{TABLE}-{D}.lance" / "_versions").glob("*.manifest"))[:torn]:
        path.write_bytes(b"")
    again, embedder = Understanding(tmp_path), Counting()
    again.vectors(["one", "two", "three"], embedder)
    assert embedder.calls == [["three"] if torn == 1 else ["one", "two", "three"]]
    rows = lance.dataset(str(tmp_path / f"{TABLE}-{D}.lance")).count_rows()
    assert rows == 3


def test_an_answer_after_the_end_is_left_for_the_next(tmp_path: Path) -> None:
    known = Understanding(tmp_path)
    known.keep(ONE, "reader", said_of(*ONE))
    known.close()
    assert list((tmp_path / ANSWERS).iterdir()) == []
    known.keep(TWO, "reader", said_of(*TWO))
    assert Understanding(tmp_path).said([ONE, TWO], "reader") == [said_of(*ONE), said_of(*TWO)]


def test_what_an_older_index_kept_is_moved_once(tmp_path: Path) -> None:
    former, folder = tmp_path / "tables", tmp_path / TABLE
    inherit(folder, former)
    assert not folder.exists(), "there was nothing"
    old = Understanding(former)
    old.vectors(["one"], Counting())
    old.keep(ONE, "reader", said_of(*ONE))
    old.gather()
    old.keep(TWO, "reader", said_of(*TWO))
    old.release()
    [page] = (former / ANSWERS).iterdir()
    page.rename(former / f"{TABLE}.answers")

    inherit(folder, former)
    assert not list(former.glob("understanding*"))
    embedder, known = Counting(), Understanding(folder)
    assert known.said([ONE, TWO], "reader") == [said_of(*ONE), said_of(*TWO)]
    known.vectors(["one", "two"], embedder)
    assert embedder.calls == [["two"]]
    known.close()

    (former / f"{TABLE}-{D}.lance").mkdir()
    inherit(folder, former)
    Understanding(folder).vectors(["one", "two"], embedder)
    assert embedder.calls == [["two"]], "what is there already stays"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.point("notes", home.fresh("notes"), after=home.latest("notes"))
    return home


def test_one_whose_namespace_is_deleted_begins_anew(home: Home) -> None:
    embedder, known = Counting(), Understanding(home.understanding("notes"))
    known.vectors(["one"], embedder)
    known.keep(ONE, "reader", said_of(*ONE))
    known.gather()
    known.keep(TWO, "reader", said_of(*TWO))
    home.bury("notes", {})
    assert known.said([ONE, TWO], "reader") == [None, None], "what was said of deleted texts is gone"
    known.vectors(["one"], embedder)
    assert embedder.calls == [["one"], ["one"]]
    known.keep(TWO, "reader", said_of(*TWO))
    known.gather()
    assert Understanding(home.understanding("notes")).said([TWO], "reader") == [said_of(*TWO)]


@pytest.mark.parametrize("what", ["get_fragments", "insert"])
def test_a_deletion_in_the_middle_of_an_addition_costs_nothing_else(
    home: Home, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home.understanding("notes")
    embedder, known = Counting(), Understanding(folder)
    known.vectors(["one"], embedder)
    ordinary = getattr(lance.LanceDataset, what)

    def deleting(dataset: Any, *arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(lance.LanceDataset, what, ordinary)
        home.bury("notes", {})
        return ordinary(dataset, *arguments, **named)

    monkeypatch.setattr(lance.LanceDataset, what, deleting)
    assert np.array_equal(known.vectors(["two"], embedder), HashingEmbedder(D).embed(["two"]))
    for again in (known, Understanding(folder)):
        again.vectors(["one", "two", "three"], embedder)
    known.vectors(["one", "two", "three"], embedder)
    assert embedder.calls[:2] == [["one"], ["two"]] and len(embedder.calls) == 3


def test_a_table_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    known = Understanding(tmp_path)
    known.vectors(["one"], Counting())
    for path in (tmp_path / f"{TABLE}-{D}.lance" / "data").iterdir():
        path.unlink()
    with pytest.raises(StoreError, match=f"{TABLE}-{D}"):
        known.vectors(["one"], Counting())


def test_many_additions_are_compacted_and_brought_onto_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "COMPACT_AFTER", 4)
    monkeypatch.setattr(kept, "SUPERSEDED_SECONDS", 0.0)
    monkeypatch.setattr(understanding, "SYNC_SECONDS", 0.0)
    synced: list[Path] = []
    monkeypatch.setattr(understanding, "sync_since", lambda folder, _: synced.append(folder))
    known, other, embedder = Understanding(tmp_path), Understanding(tmp_path), Counting()
    texts = [f"text {number}" for number in range(20)]
    for number, text in enumerate(texts):
        known.vectors([text], embedder)
        other.vectors(texts[: number + 1], embedder)
    assert len(embedder.calls) == len(texts)
    table = lance.dataset(str(tmp_path / f"{TABLE}-{D}.lance"))
    assert len(table.get_fragments()) <= 5 and len(table.versions()) <= 8
    assert synced == [tmp_path] * 20


def _embed(folder: Path, who: int, rounds: int) -> None:
    """Add and look up, as one of several processes; fails where anything that is known is asked for again."""
    kept.SUPERSEDED_SECONDS = 0.2
    kept.COMPACT_AFTER = 8
    known, embedder = Understanding(folder), Counting()
    for number in range(rounds):
        own = [f"{who} {earlier} {place}" for earlier in range(number + 1) for place in range(3)]
        vectors = known.vectors(own, embedder)
        assert np.array_equal(vectors, HashingEmbedder(D).embed(own))
        assert embedder.calls[-1] == own[-3:] and len(embedder.calls) == number + 1
        known.keep(("", f"{who} {number}"), "reader", said_of("", f"{who} {number}"))
        known.gather()
    known.close()


def test_processes_add_look_up_and_compact_at_once(tmp_path: Path) -> None:
    rounds, count = 30, 3
    processes = [SPAWN.Process(target=_embed, args=(tmp_path, who, rounds)) for who in range(count)]
    for process in processes:
        process.start()
    held, found = Understanding(tmp_path), 0
    passages = [("", f"{who} {number}") for who in range(count) for number in range(rounds)]
    while any(process.is_alive() for process in processes):
        said = held.said(passages, "reader")
        assert all(one in (None, said_of(*passage)) for one, passage in zip(said, passages, strict=True))
        now = sum(one is not None for one in said)
        assert now >= found, "what was found once is found again"
        found = now
    assert [process.exitcode for process in processes] == [0] * count

    for known in (held, Understanding(tmp_path)):
        embedder = Counting()
        known.vectors(
            [f"{who} {n} {place}" for who in range(count) for n in range(rounds) for place in range(3)], embedder
        )
        assert embedder.calls == [], "a vector was lost"
        assert known.said(passages, "reader") == [said_of(*passage) for passage in passages]
    for table in (TABLE, f"{TABLE}-{D}"):
        dataset = lance.dataset(str(tmp_path / f"{table}.lance"))
        assert len(dataset.get_fragments()) <= 2 * 8 + count


def _keep_for_ever(folder: Path, who: int, said: Connection) -> None:
    # Most of them are killed in the middle of a compaction.
    kept.COMPACT_AFTER, kept.SUPERSEDED_SECONDS = 2, 0.2
    known = Understanding(folder)
    for number in range(10**6):
        passage = ("", f"{who} {number}")
        known.keep(passage, "reader", said_of(*passage))
        said.send(passage)
        if number % 3 == 2:
            known.gather()


def test_of_killed_processes_nothing_is_lost(tmp_path: Path) -> None:
    kept_passages: list[tuple[str, str]] = []
    for round in range(3):
        started = []
        for who in range(2):
            ours, theirs = SPAWN.Pipe(duplex=False)
            process = SPAWN.Process(target=_keep_for_ever, args=(tmp_path, 10 * round + who, theirs))
            process.start()
            theirs.close()
            started.append((process, ours))
        for process, ours in started:
            kept_passages += [ours.recv() for _ in range(7 + 6 * round)]
            process.kill()
            process.join()
            with suppress(EOFError):
                while True:
                    kept_passages.append(ours.recv())
    known = Understanding(tmp_path)
    assert known.said(kept_passages, "reader") == [said_of(*passage) for passage in kept_passages]
    known.close()
    assert list((tmp_path / ANSWERS).glob("*.jsonl")) == []
    assert Understanding(tmp_path).said(kept_passages, "reader") == [said_of(*passage) for passage in kept_passages]
