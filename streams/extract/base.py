"""The contract of an extractor: what reads passages one by one and says what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol, runtime_checkable

from index.types import Extraction

Text = tuple[str, str]
"""Title and text of a passage."""


class Extractor(Protocol):
    """Reads passages. The same passage always gives the same extraction, whatever else is in the index or the batch."""

    @property
    def fingerprint(self) -> str:
        """Name, version and settings: what changes an extraction changes it. Part of an index's fingerprint."""
        ...

    def extract(self, passages: Sequence[Text]) -> list[Extraction]:
        """One extraction for each (title, text), in their order; blocks until the last is there.

        A passage that the extractor cannot read well comes back `degraded` and does not fail the others. Raises
        ModelError when nothing can be read; `recoverable` tells whether the same call may succeed later.
        """
        ...


@runtime_checkable
class PaidExtractor(Extractor, Protocol):
    """One whose reading costs money or much time: what it said is kept as understanding and never bought twice."""

    @property
    def concurrency(self) -> int:
        """How many passages it reads at a time, whoever asked for them."""
        ...

    def begin(self, passage: Text) -> Future[Extraction]:
        """Have a passage read as soon as there is room; the future raises what `extract` does.

        Never blocks. A future that is cancelled before its turn costs nothing.
        """
        ...

    def fall_back(self, passage: Text) -> Extraction:
        """What is kept of a passage while it cannot be read: free, at once, the same every time, and `degraded`."""
        ...
