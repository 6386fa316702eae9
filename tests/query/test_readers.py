"""Readers of one data folder: opened once, few at a time, always those of the living incarnation."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import query.readers
from index.errors import GistreamError, NotFound
from index.metrics import Metrics
from index.reader import Reader
from index.types import DocumentEvent
from query.readers import Readers
from streams.rebuild import rebuild
from tests.query.served import Served, serving
from tests.support import wait_until


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("data")) as served:
        for name in ("one", "two", "three"):
            write(served, name, "a")
        yield served


def write(served: Served, namespace: str, id: str, text: str = "Anna met Bert.") -> None:
    served.log.append([DocumentEvent(namespace=namespace, id=id, text=text)])
    served.runner.drain()


def readers_of(served: Served, **options: float) -> Readers:
    return Readers(served.readers.home, Metrics(), **options)  # type: ignore[arg-type]


def test_what_is_unknown_is_not_found_and_pushes_nothing_out(served: Served) -> None:
    readers = readers_of(served, capacity=1)
    readers.snapshot("one")
    for name in ("nowhere", "../one", "", "one\n"):
        with pytest.raises(NotFound):
            readers.snapshot(name)
    assert len(readers) == 1


def test_at_most_so_many_are_held_and_the_least_recently_used_goes(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def opening(folder: Path, *, exact_max: int) -> Reader:
        opened.append(folder.parent.name)
        return Reader(folder, exact_max=exact_max)

    monkeypatch.setattr(query.readers, "Reader", opening)
    readers = readers_of(served, capacity=2)
    held = readers.snapshot("one")
    for name in ("two", "one", "three", "one", "two"):
        readers.snapshot(name)
    assert opened == ["one", "two", "three", "two"]
    assert len(readers) == 2
    readers.snapshot("three")
    assert held.documents_by_id(["a"]), "a snapshot outlives its reader"


def test_who_asks_at_the_same_time_shares_one_reader(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    def opening(folder: Path, *, exact_max: int) -> Reader:
        opened.append(folder)
        return Reader(folder, exact_max=exact_max)

    monkeypatch.setattr(query.readers, "Reader", opening)
    readers, together = readers_of(served), Barrier(8)

    def ask(_: int) -> int:
        together.wait()
        return id(readers.snapshot("one"))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert len(opened) == 1


def test_one_that_cannot_be_opened_is_tried_anew(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: Path, *, exact_max: int) -> Reader:
        raise GistreamError("no luck")

    readers = readers_of(served)
    with monkeypatch.context() as patched:
        patched.setattr(query.readers, "Reader", failing)
        with pytest.raises(GistreamError, match="no luck"):
            readers.snapshot("one")
    assert readers.snapshot("one").manifest.counts.documents


def test_commits_are_followed_behind_the_questions(served: Served) -> None:
    with readers_of(served) as readers:
        before = readers.snapshot("two")
        write(served, "two", "b")
        wait_until(lambda: "b" in readers.snapshot("two").documents_by_id(["b"]), what="the new document")
        assert "b" not in before.documents_by_id(["b"])


def test_without_the_thread_only_refresh_follows(served: Served) -> None:
    readers = readers_of(served)
    before = readers.snapshot("two")
    write(served, "two", "c")
    assert readers.snapshot("two") is before
    assert "c" in readers.refresh("two").documents_by_id(["c"])


def test_a_new_incarnation_takes_over_and_a_deleted_namespace_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(tmp_path) as served:
        write(served, "ns", "a")
        home = served.readers.home
        with readers_of(served) as readers:
            former = readers.snapshot("ns").folder
            served.runner.close()
            rebuild(home, "ns", served.pipeline)
            wait_until(lambda: readers.snapshot("ns").folder != former, what="the new incarnation")
            assert "a" in readers.snapshot("ns").documents_by_id(["a"])
            with caplog.at_level(logging.WARNING, "query.readers"):
                home.bury("ns", {})
                wait_until(lambda: len(readers) == 0, what="letting go")
            with pytest.raises(NotFound):
                readers.snapshot("ns")


def test_one_that_is_damaged_does_not_answer_from_what_it_was(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        write(served, "ns", "a")
        with readers_of(served) as readers:
            manifests = readers.snapshot("ns").folder / "manifests"
            newest = max(manifests.glob("*.json"))
            (manifests / f"{int(newest.stem) + 1:020d}.json").write_text("{}")
            wait_until(lambda: len(readers) == 0, what="letting go")
            with pytest.raises(GistreamError, match="damaged"):
                readers.snapshot("ns")


def test_where_the_vectors_are_is_counted(served: Served) -> None:
    readers = readers_of(served)
    assert (readers.vectors("memory"), readers.vectors("table")) == (0, 0)
    counts = readers.snapshot("one").manifest.counts
    assert readers.vectors("memory") == counts.passages + counts.facts > 0
    assert readers.vectors("table") == 0
