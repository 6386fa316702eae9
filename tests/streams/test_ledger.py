"""Tests of the ledger: it never says more than was noted, and its newest holder is the only one."""

from __future__ import annotations

import os
import tempfile
import threading
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from index.errors import WriterFenced
from index.exclusive import create
from streams.ledger import KEPT, Ledger, Reached
from streams.position import NOTHING


def records(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


class Holders(RuleBasedStateMachine):
    """Several workers that take a partition from each other, and power losses that tear the newest record."""

    def __init__(self) -> None:
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name) / "ledger"
        self.holders: list[Ledger] = []
        self.noted: list[int] = [NOTHING]
        """What the records that stand must say, the oldest first."""

    def teardown(self) -> None:
        self.temporary.cleanup()

    @rule()
    def take_over(self) -> None:
        ledger = Ledger(self.folder)
        assert ledger.position == self.noted[-1]
        assert all(ledger.reached.epoch > former.reached.epoch for former in self.holders)
        self.holders.append(ledger)
        self.noted.append(ledger.position)

    @rule()
    def start_over(self) -> None:
        ledger = Ledger(self.folder, from_start=True)
        assert ledger.position == NOTHING
        self.holders.append(ledger)
        self.noted.append(NOTHING)

    @precondition(lambda self: self.holders)
    @rule(step=st.integers(-3, 10))
    def advance(self, step: int) -> None:
        holder = self.holders[-1]
        before = holder.position
        holder.advance(before + step)
        assert holder.position == max(before, before + step)
        if step > 0:
            self.noted.append(holder.position)

    @precondition(lambda self: len(self.holders) > 1)
    @rule(which=st.integers(0, 9), step=st.integers(1, 1000))
    def a_stale_holder_is_refused(self, which: int, step: int) -> None:
        stale = self.holders[which % (len(self.holders) - 1)]
        with pytest.raises(WriterFenced, match="another worker"):
            stale.check()
        with pytest.raises(WriterFenced):
            stale.advance(stale.position + step)

    @precondition(lambda self: self.holders)
    @rule(step=st.integers(1, 1000))
    def a_stale_record_does_not_count(self, step: int) -> None:
        """What a former holder wrote between the look and the take-over of the next one."""
        numbers = [int(path.stem) for path in records(self.folder)]
        stale = Reached(epoch=self.holders[-1].reached.epoch - 1, position=self.holders[-1].position + step)
        path = self.folder / f"{max(numbers) + 1:020d}.json"
        path.write_text(stale.model_dump_json())
        self.holders[-1].check()
        ledger = Ledger(self.folder)
        assert ledger.position == self.noted[-1]
        path.unlink()
        self.holders.append(ledger)
        self.noted.append(ledger.position)

    @precondition(lambda self: len(self.noted) > 1 and len(records(self.folder)) > 1)
    @rule(cut=st.integers(0, 12))
    def power_loss(self, cut: int) -> None:
        """Every holder dies, and the newest record is cut short; the one before it rules."""
        newest = records(self.folder)[-1]
        newest.write_bytes(newest.read_bytes()[:cut])
        (self.folder / ".a-draft").write_bytes(b"")
        self.noted.pop()
        self.holders.clear()
        self.take_over()
        # The torn one keeps its number, so that it is older than what comes now.
        assert records(self.folder)[-1] > newest
        newest.unlink()

    @invariant()
    def few_records_stay(self) -> None:
        if self.folder.exists():
            assert len(records(self.folder)) <= KEPT

    @invariant()
    def the_newest_holder_holds(self) -> None:
        if self.holders:
            self.holders[-1].check()


TestHolders = Holders.TestCase
TestHolders.settings = settings(stateful_step_count=12)


def test_records_are_pruned_as_it_advances(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for position in range(20):
        ledger.advance(position)
    assert len(os.listdir(tmp_path)) == KEPT
    for path in records(tmp_path)[1:]:
        path.write_bytes(b"")
    assert Ledger(tmp_path).position == 17, "the oldest of those that stay"


def test_a_ledger_of_which_nothing_can_be_read_starts_from_the_beginning(tmp_path: Path) -> None:
    Ledger(tmp_path).advance(7)
    for path in records(tmp_path):
        path.write_bytes(b"\xff{")
    ledger = Ledger(tmp_path)
    assert ledger.position == NOTHING
    ledger.advance(8)
    assert Ledger(tmp_path).position == 8


@pytest.mark.parametrize("advances", [0, 1, 2 * KEPT])
def test_one_that_comes_in_between_is_not_overlooked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, advances: int
) -> None:
    """Even where its first record is gone again by then."""
    newest, others = Ledger._newest, list[Ledger]()

    def interrupted(self: Ledger) -> Reached | None:
        found = newest(self)
        if not others:
            monkeypatch.setattr(Ledger, "_newest", newest)
            others.append(Ledger(tmp_path))
            for position in range(advances):
                others[0].advance(position)
        return found

    monkeypatch.setattr(Ledger, "_newest", interrupted)
    ledger = Ledger(tmp_path)
    assert ledger.reached.epoch > others[0].reached.epoch and ledger.position == others[0].position
    ledger.check()
    with pytest.raises(WriterFenced):
        others[0].check()


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_one_that_takes_over_while_another_advances_is_seen_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """However often that one has looked at the numbers by then: its next record may not hide the other's."""
    ledger, others, next_number = Ledger(tmp_path), list[Ledger](), Ledger._next_number
    seen = count()

    def taken_over() -> None:
        if not others and next(seen) == looks:
            monkeypatch.undo()
            others.append(Ledger(tmp_path))

    def interrupted(self: Ledger) -> int:
        taken_over()
        return next_number(self)

    def created(path: Path, content: bytes) -> bool:
        taken_over()
        return create(path, content)

    monkeypatch.setattr(Ledger, "_next_number", interrupted)
    monkeypatch.setattr("streams.ledger.create", created)
    with pytest.raises(WriterFenced):
        ledger.advance(7)
    assert others[0].position == NOTHING
    others[0].check()


def test_of_many_that_open_it_at_once_one_holds_it(tmp_path: Path) -> None:
    ledgers: list[Ledger] = []
    threads = [threading.Thread(target=lambda: ledgers.append(Ledger(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    epochs = sorted(ledger.reached.epoch for ledger in ledgers)
    assert epochs == list(range(1, 9))
    for ledger in ledgers:
        if ledger.reached.epoch == 8:
            ledger.advance(1)
        else:
            with pytest.raises(WriterFenced):
                ledger.advance(1)
