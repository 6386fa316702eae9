"""What calls of a model have cost, durably, and the budget that no call may pass."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from index.errors import BudgetSpent

from ..database import Database

Outcome = Literal["answered", "garbage", "truncated", "refused", "unavailable", "misset", "lost"]
"""What became of a call; `lost`: its process ended before it came back, so it counts as dear as it could have been."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS spent (outcome TEXT PRIMARY KEY, calls INTEGER, input INTEGER, output INTEGER,"
    " cost REAL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS held (id INTEGER PRIMARY KEY CHECK (id = 0), reason TEXT)",
    "CREATE TABLE IF NOT EXISTS reserved (call INTEGER PRIMARY KEY AUTOINCREMENT, since REAL, input INTEGER,"
    " output INTEGER, cost REAL)",
)


class Usage(NamedTuple):
    """Tokens of one call."""

    input: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0

    def of(self, usage: Usage) -> float:
        """US dollars."""
        return (usage.input * self.input + usage.output * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent since the data folder was made; None is no bound."""

    usd: float | None = None
    tokens: int | None = None

    def holds(self, usd: float, tokens: int) -> bool:
        # A sum of many prices is not exact to the last digit.
        return (self.usd is None or usd <= self.usd + 1e-9) and (self.tokens is None or tokens <= self.tokens)


class Totals(NamedTuple):
    """Sums over calls."""

    calls: int
    input: int
    output: int
    cost: float
    """US dollars."""

    def since(self, before: Totals) -> Totals:
        """What came after `before`."""
        return Totals(
            self.calls - before.calls, self.input - before.input, self.output - before.output, self.cost - before.cost
        )


class Spending:
    """A ledger of calls in one SQLite file, shared by threads and processes.

    Before a call the most that it may cost is reserved, afterwards what it did cost takes the place of that. So the
    budget holds also while many calls are under way, and over kills: a reservation whose process died counts as spent.
    """

    def __init__(
        self, path: Path, budget: Budget = Budget(), price: Price = Price(), *, longest_seconds: float = 3600.0
    ) -> None:
        """`longest_seconds`: a reservation older than that belongs to a dead process. Raises StoreError."""
        self.budget = budget
        self.price = price
        self._longest = longest_seconds
        # Not synced: twice a call it would cost more than it protects.
        self._database = Database(path, _SCHEMA, synced=False)
        self._settled = threading.Condition()
        self._under_way = 0

    @property
    def under_way(self) -> int:
        """Calls of this process that are reserved and not settled."""
        return self._under_way

    def reserve(self, most: Usage) -> int:
        """Set the most that a call may cost aside; returns the number to settle it by.

        Where only calls under way stand between the call and the budget, it waits for them. Raises BudgetSpent where
        the budget does not hold it.
        """
        with self._settled:
            while (call := self._try_to_reserve(most)) is None:
                if not self._under_way:
                    raise self._refusal(most)
                self._settled.wait()
            self._under_way += 1
            return call

    def settle(self, call: int, outcome: Outcome, usage: Usage) -> float:
        """Replace a reservation by what the call did cost, which is returned in US dollars."""
        cost = self.price.of(usage)
        with self._settled:
            try:
                with self._database.transaction() as connection:
                    connection.execute("DELETE FROM reserved WHERE call = ?", (call,))
                    _book(connection, outcome, 1, usage, cost)
            finally:
                self._under_way -= 1
                self._settled.notify_all()
        return cost

    def totals(self) -> Totals:
        """All that was spent."""
        rows = self.by_outcome().values()
        return Totals(
            sum(row.calls for row in rows),
            sum(row.input for row in rows),
            sum(row.output for row in rows),
            sum(row.cost for row in rows),
        )

    def by_outcome(self) -> Mapping[str, Totals]:
        """All that was spent, by what became of the calls."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT outcome, calls, input, output, cost FROM spent ORDER BY outcome")
            return {outcome: Totals(*row) for outcome, *row in rows.fetchall()}

    def held(self) -> str | None:
        """Why no call is made at present: the budget did not hold the last one that was wanted."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT reason FROM held").fetchone()
            return None if row is None else str(row[0])

    def close(self) -> None:
        self._database.close()

    def _try_to_reserve(self, most: Usage) -> int | None:
        cost, moment = self.price.of(most), time.time()
        with self._database.transaction() as connection:
            dead = connection.execute(
                "DELETE FROM reserved WHERE since < ? RETURNING input, output, cost", (moment - self._longest,)
            ).fetchall()
            for input, output, lost in dead:
                _book(connection, "lost", 1, Usage(input, output), lost)
            usd, tokens = connection.execute(
                "SELECT coalesce(sum(cost), 0), coalesce(sum(input + output), 0)"
                " FROM (SELECT input, output, cost FROM spent UNION ALL SELECT input, output, cost FROM reserved)"
            ).fetchone()
            if not self.budget.holds(usd + cost, tokens + sum(most)):
                return None
            connection.execute("DELETE FROM held")
            return connection.execute(
                "INSERT INTO reserved (since, input, output, cost) VALUES (?, ?, ?, ?)", (moment, *most, cost)
            ).lastrowid

    def _refusal(self, most: Usage) -> BudgetSpent:
        totals = self.totals()
        of = f" of {self.budget.usd:g}" if self.budget.usd is not None else ""
        tokens = f" of {self.budget.tokens:,}" if self.budget.tokens is not None else ""
        error = BudgetSpent(
            f"the model's budget is spent: {totals.cost:.4f}{of} USD and {totals.input + totals.output:,}{tokens}"
            f" tokens in {totals.calls:,} calls, and the next call may take {sum(most):,} tokens",
            hint="Raise GISTREAM_BUDGET_USD or GISTREAM_BUDGET_TOKENS and start again; accepted events wait in the log",
        )
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO held VALUES (0, ?)", (error.message,))
        return error


def _book(connection: sqlite3.Connection, outcome: Outcome, calls: int, usage: Usage, cost: float) -> None:
    connection.execute(
        "INSERT INTO spent VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,"
        " input = input + excluded.input, output = output + excluded.output, cost = cost + excluded.cost",
        (outcome, calls, *usage, cost),
    )
