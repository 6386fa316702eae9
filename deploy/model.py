"""What a paid extractor's model has cost, as its ledger tells it, whichever process asked."""

from __future__ import annotations

from typing import Self

from streams.extract.spending import Spending, Totals

from .assembly import spending_path
from .settings import Settings

_NOTHING = Totals(0, 0, 0, 0.0)


class Bill:
    """The ledger of a data folder, and what came to it since this was made. Makes no ledger where there is none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ledger: Spending | None = None
        self._before = self._totals()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ledger is not None:
            self._ledger.close()

    def since(self) -> Totals:
        """What was spent since."""
        return self._totals().since(self._before)

    def figures(self) -> dict[str, object] | None:
        """All that was spent, with what it went for and what it may come to; None where no model was ever asked."""
        totals = self._totals()
        if self._ledger is None:
            return None
        return {
            **as_figures(totals),
            "outcomes": {outcome: row.calls for outcome, row in self._ledger.by_outcome().items()},
            "held": self._ledger.held(),
            "budget_usd": self._settings.budget_usd,
            "budget_tokens": self._settings.budget_tokens,
        }

    def _totals(self) -> Totals:
        path = spending_path(self._settings)
        if self._ledger is None and path.exists():
            self._ledger = Spending(path)
        return _NOTHING if self._ledger is None else self._ledger.totals()


def as_figures(totals: Totals) -> dict[str, object]:
    """For JSON."""
    return {
        "calls": totals.calls,
        "input_tokens": totals.input,
        "output_tokens": totals.output,
        "cost_usd": round(totals.cost, 6),
    }


def as_note(totals: Totals) -> str:
    """For people, on one line; empty where nothing was spent."""
    if not totals.calls:
        return ""
    cost = f", ${totals.cost:.4f}" if totals.cost else ""
    return f"{totals.calls:,} calls, {totals.input + totals.output:,} tokens{cost}"
