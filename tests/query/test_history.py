"""Older snapshots: opened once, few at a time, and never longer than their manifest stands."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from index.errors import NotFound, SnapshotGone, Torn
from index.manifest import Manifest, Manifests
from index.metrics import Metrics
from index.reader import Reader
from index.snapshot import Snapshot
from index.types import DocumentEvent
from query.history import History
from query.readers import Readers
from streams.rebuild import rebuild
from tests.query.served import Served, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        for number in range(5):
            write(served, f"Anna number {number}.")
        yield served


def write(served: Served, text: str) -> None:
    served.log.append([DocumentEvent(namespace="ns", id="d", text=text)])
    served.runner.drain()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers that were opened, in order."""
    opened: list[int] = []
    older = Reader.older

    def counted(reader: Reader, manifest: Manifest) -> Snapshot:
        opened.append(manifest.number)
        return older(reader, manifest)

    monkeypatch.setattr(Reader, "older", counted)
    return opened


def text(snapshot: Snapshot) -> str:
    return snapshot.documents_by_id(["d"])["d"].text


def history_of(served: Served, capacity: int = 8) -> History:
    return History(Readers(served.readers.home, Metrics()), Metrics(), capacity=capacity)


def test_at_most_so_many_are_held_and_the_least_recently_used_goes(served: Served, opened: list[int]) -> None:
    history = history_of(served, capacity=2)
    for number in (2, 3, 2, 4, 2, 3):
        assert text(history.snapshot("ns", number)) == f"Anna number {number - 2}."
    assert opened == [2, 3, 4, 3]
    assert len(history) == 2


def test_the_newest_is_not_opened_twice(served: Served, opened: list[int]) -> None:
    history = history_of(served)
    assert history.snapshot("ns", 6) is history.snapshot("ns", None)
    write(served, "Anna came back.")
    assert text(history.snapshot("ns", 7)) == "Anna came back."
    assert text(history.snapshot("ns", 6)) == "Anna number 4."
    assert opened == [6]


def test_who_asks_at_the_same_time_shares_one(served: Served, opened: list[int]) -> None:
    history, together = history_of(served), Barrier(8)

    def ask(_: int) -> int:
        together.wait()
        return id(history.snapshot("ns", 3))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert opened == [3]


def test_one_that_cannot_be_opened_is_tried_anew(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(reader: Reader, manifest: Manifest) -> Snapshot:
        raise Torn("no luck")

    history = history_of(served)
    with monkeypatch.context() as patched:
        patched.setattr(Reader, "older", failing)
        with pytest.raises(Torn, match="no luck"):
            history.snapshot("ns", 3)
    assert len(history) == 0
    assert text(history.snapshot("ns", 3)) == "Anna number 1."


def test_what_is_held_is_gone_with_its_manifest(served: Served) -> None:
    history = history_of(served)
    history.snapshot("ns", 3)
    Manifests(served.readers.home.incarnation("ns") / "manifests").remove(3)
    with pytest.raises(SnapshotGone, match="the nearest that stand: 2 and 4"):
        history.snapshot("ns", 3)


def test_a_rebuilt_namespace_does_not_answer_for_its_former_index(served: Served) -> None:
    home, history = served.readers.home, history_of(served)
    before = history.snapshot("ns", 4).manifest.time
    assert home.remade("ns") is None
    served.runner.close()
    rebuild(home, "ns", served.pipeline)
    # The way to the new index is not a past that anybody may ask for.
    [newest] = Manifests(home.incarnation("ns") / "manifests").numbers()
    assert text(history.snapshot("ns", newest)) == "Anna number 4."
    for when in (6, before):
        with pytest.raises(SnapshotGone, match="namespace ns was made anew at"):
            history.snapshot("ns", when)
    with pytest.raises(SnapshotGone, match=f"the nearest that stand: {newest}"):
        history.snapshot("ns", newest - 1)
    with pytest.raises(NotFound):
        history.snapshot("ns", 0)
    assert home.remade("ns") is not None
