"""A paid extractor that buys nothing: what is not known already is read by its fallback."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from index.types import Extraction

from .base import PaidExtractor, Text


@dataclass(frozen=True, slots=True)
class Unbought:
    """For checks that must neither pay nor understand anything better than the index that they check did."""

    inside: PaidExtractor
    concurrency: int = 0
    """Nothing is worth being begun early."""

    @property
    def fingerprint(self) -> str:
        return self.inside.fingerprint

    def extract(self, passages: Sequence[Text]) -> list[Extraction]:
        """Never raises; everything comes back `degraded`."""
        return [self.inside.fall_back(passage) for passage in passages]

    def begin(self, passage: Text) -> Future[Extraction]:
        """Done before it returns."""
        done: Future[Extraction] = Future()
        done.set_result(self.fall_back(passage))
        return done

    def fall_back(self, passage: Text) -> Extraction:
        return self.inside.fall_back(passage)
