"""Tests of the ledger: what is spent is never forgotten, and no budget is passed, whoever spends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from index.errors import BudgetSpent
from streams.extract.spending import Budget, Price, Spending, Totals, Usage

from ..support import wait_until

PRICE = Price(input=1.0, output=10.0)
MOST = Usage(1_000, 100)
"""0.002 US dollars."""


class Ledgers:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[Spending] = []

    def __call__(self, budget: Budget | None = None) -> Spending:
        """One more process's view of the same ledger."""
        self._open.append(Spending(self._path, budget or Budget(), PRICE, longest_seconds=60.0))
        return self._open[-1]

    def close(self) -> None:
        for one in self._open:
            one.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledgers]:
    ledgers = Ledgers(tmp_path / "spending.db")
    yield ledgers
    ledgers.close()


def test_what_is_settled_takes_the_place_of_what_was_reserved(ledger: Ledgers) -> None:
    one = ledger()
    calls = [one.reserve(MOST) for _ in range(3)]
    assert one.under_way == 3 and one.totals() == Totals(0, 0, 0, 0)
    assert one.settle(calls[0], "answered", Usage(500, 50)) == pytest.approx(0.001)
    one.settle(calls[1], "garbage", Usage(10, 1))
    one.settle(calls[2], "answered", Usage(500, 50))
    assert one.under_way == 0
    assert one.by_outcome()["answered"] == Totals(2, 1000, 100, 0.002)
    assert one.totals().since(Totals(1, 10, 1, 0.0))[:3] == (2, 1000, 100)
    assert ledger().totals() == one.totals(), "another process finds the same"


@pytest.mark.parametrize("budget", [Budget(usd=0.02), Budget(tokens=11_000), Budget(usd=0.02, tokens=10**9)])
def test_a_budget_holds_the_most_that_calls_may_cost(ledger: Ledgers, budget: Budget) -> None:
    one = ledger(budget)
    for _ in range(10):
        one.settle(one.reserve(MOST), "answered", MOST)
    with pytest.raises(BudgetSpent, match="10 calls"):
        one.reserve(MOST)
    assert "the model's budget is spent" in (ledger().held() or ""), "another process can tell"
    more = ledger(Budget(usd=0.03))
    more.settle(more.reserve(MOST), "answered", MOST)
    assert one.held() is None


def test_who_finds_only_calls_under_way_in_the_way_waits_for_them(ledger: Ledgers) -> None:
    one = ledger(Budget(usd=0.002))
    first = one.reserve(MOST)
    got: list[int] = []
    waiting = threading.Thread(target=lambda: got.append(one.reserve(Usage(500, 0))))
    waiting.start()
    one.settle(first, "answered", Usage(500, 50))
    wait_until(lambda: len(got) == 1, what="the second reservation")
    waiting.join()
    one.settle(got[0], "answered", Usage(500, 0))
    with pytest.raises(BudgetSpent):
        one.reserve(MOST)


def test_calls_of_other_processes_are_not_waited_for(ledger: Ledgers) -> None:
    ledger().reserve(MOST)
    with pytest.raises(BudgetSpent):
        ledger(Budget(usd=0.002)).reserve(MOST)


def test_what_died_under_way_counts_as_spent(ledger: Ledgers, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger().reserve(MOST)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    other = ledger()
    other.settle(other.reserve(MOST), "answered", Usage())
    assert other.by_outcome()["lost"] == Totals(1, *MOST, 0.002)


def test_many_threads_of_two_processes_never_pass_the_budget(ledger: Ledgers) -> None:
    both = [ledger(Budget(usd=0.1)) for _ in range(2)]

    def call(number: int) -> bool:
        one = both[number % 2]
        try:
            one.settle(one.reserve(MOST), "answered", MOST)
        except BudgetSpent:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        done = sum(pool.map(call, range(200)))
    assert done == both[0].totals().calls <= 50
    assert both[0].totals().cost <= 0.1 + 1e-12
