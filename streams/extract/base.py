"""The contract of an extractor: what reads passages one by one and says what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from index.types import Extraction


class Extractor(Protocol):
    """Reads passages. The same passage always gives the same extraction, whatever else is in the index or the batch."""

    @property
    def fingerprint(self) -> str:
        """Name, version and settings: what changes an extraction changes it. Part of an index's fingerprint."""
        ...

    @property
    def paid(self) -> bool:
        """Whether reading costs money or much time: then extractions are kept as understanding, never bought twice."""
        ...

    def extract(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        """One extraction for each (title, text), in their order; blocks until the last is there.

        A passage that the extractor cannot read well comes back `degraded` and does not fail the others. Raises
        ModelError when nothing can be read; `recoverable` tells whether the same call may succeed later.
        """
        ...
