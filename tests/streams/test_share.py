"""Tests of a worker's share: poison is put aside, and nothing is acknowledged that another worker may still need."""

from __future__ import annotations

from pathlib import Path

import pytest

import streams.share
from index.errors import BrokerUnavailable, StoreError, WriterFenced
from index.metrics import Metrics
from index.types import Accepted
from streams.position import NOTHING
from streams.share import Role, Share
from streams.window import Window
from streams.wire import Record, document_event

from .kafkaless import REGISTER, Box


class ByHand:
    """Work that is done when the test says so."""

    is_held_up = False

    def __init__(self, window: Window) -> None:
        self.window = window
        self.error: Exception | None = None
        self.durable: dict[str, int] | None = None
        self.started = self.closed = False

    def start(self) -> None:
        self.started = True

    def close(self) -> None:
        self.closed = True


class Case:
    def __init__(self, folder: Path) -> None:
        self.box = Box()
        self.works: list[ByHand] = []

        def work(window: Window, _: object) -> ByHand:
            self.works.append(ByHand(window))
            return self.works[-1]

        def read(record: Record, source: str) -> Accepted:
            event = document_event(record.key, record.value)
            return Accepted(record.offset, 0, event, {source: record.offset})

        self.role = Role("test", REGISTER.documents, folder / "ledgers", read, work, self.box, Metrics())
        self.share = Share(self.role, {0, 2})

    @property
    def work(self) -> ByHand:
        return self.works[-1]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr(streams.share, "ADVANCE_SECONDS", 0.0)
    return Case(tmp_path)


def tombstone(offset: int, partition: int = 0, key: bytes | None = b"ada/x") -> Record:
    return Record(partition, offset, 0, key, None)


def test_the_last_offset_is_known_before_anything_comes(case: Case) -> None:
    case.share.take(tombstone(7), None)
    case.work.window.finish("ada", 1)
    case.share.close()
    again = Share(case.role, {0, 2})
    assert (again.last(0), again.last(2)) == (7, NOTHING)
    again.take(tombstone(8), None)
    assert again.last(0) == 8


def test_poison_goes_to_the_dead_letters_and_what_is_behind_it_goes_on(case: Case) -> None:
    handles = [object(), object(), object()]
    for handle, record in zip(
        handles, [tombstone(3), Record(0, 5, 0, b"ada/x", b"\xff no JSON"), tombstone(6, key=b"?")], strict=True
    ):
        case.share.take(record, handle)
    places = [(letter.source, letter.step, letter.position) for letter in case.box.letters]
    assert places == [("documents-0", "decode", 5), ("documents-0", "decode", 6)]
    assert case.share.settle() == {}, "not before what stands in front of it"
    case.share.window.finish("ada", 1)
    assert [entry.handle for entry in case.share.settle()[0]] == handles
    assert case.share.ledgers[0].position == 6 and case.share.settle() == {}


def test_what_the_dead_letters_do_not_take_is_taken_again(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    poison = Record(2, 7, 0, b"?", None)

    def away(*_: object, **__: object) -> int:
        raise BrokerUnavailable("no broker")

    with monkeypatch.context() as patch:
        patch.setattr(case.box, "put", away)
        with pytest.raises(BrokerUnavailable):
            case.share.take(poison, None)
    assert case.share.settle() == {} and not len(case.share.window)
    case.share.take(poison, None)
    assert [entry.offset for entry in case.share.settle()[2]] == [7] and len(case.box.letters) == 1


def test_the_size_of_a_record_is_that_of_its_value(case: Case) -> None:
    case.share.take(Record(0, 1, 0, b"?", b"x" * 100), None)
    case.share.take(tombstone(2), None)
    assert [entry.size for entry in case.share.settle()[0]] == [100]


def test_nothing_is_acknowledged_once_the_work_has_ended(case: Case) -> None:
    case.share.take(tombstone(1), None)
    case.share.window.finish("ada", 1)
    case.work.error = StoreError("damaged")
    with pytest.raises(StoreError, match="damaged"):
        case.share.settle()
    assert case.share.ledgers[0].position == NOTHING


def test_nothing_is_acknowledged_once_a_partition_is_another_workers(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before the ledger is written again."""
    monkeypatch.setattr(streams.share, "ADVANCE_SECONDS", 3600.0)
    for partition in (0, 2):
        case.share.take(tombstone(1, partition, b"ada/x" if partition else b"bob/x"), None)
    other = Share(case.role, {2})
    case.share.window.finish("bob", 1)
    assert [*case.share.settle()] == [0], "the other partition is still ours"
    case.share.window.finish("ada", 1)
    with pytest.raises(WriterFenced, match="documents-2"):
        case.share.settle()
    assert other.ledgers[2].position == NOTHING


def test_the_ledger_follows_what_is_durable_and_no_oftener_than_a_while(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.work.durable = {}
    for offset in range(4):
        case.share.take(tombstone(offset), None)
    case.share.window.finish("ada", 3)
    assert len(case.share.settle()[0]) == 3
    assert case.share.ledgers[0].position == NOTHING
    case.work.durable = {"ada": 1}
    case.share.settle()
    assert case.share.ledgers[0].position == 1
    monkeypatch.setattr(streams.share, "ADVANCE_SECONDS", 3600.0)
    case.work.durable = {"ada": 2}
    case.share.settle()
    case.work.durable = {"ada": 9}
    case.share.settle()
    assert case.share.ledgers[0].position == 2


def test_closing_tells_how_far_it_is(case: Case) -> None:
    case.share.start()
    for offset in range(3):
        case.share.take(tombstone(offset), None)
    case.share.window.finish("ada", 2)
    done = case.share.close()
    assert case.work.started and case.work.closed
    assert [entry.offset for entry in done[0]] == [0, 1]
    assert Share(case.role, {0}).ledgers[0].position == 1
