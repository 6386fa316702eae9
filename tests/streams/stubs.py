"""Models for tests of the stream: an extractor that notes what it reads and fails when it is told to."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from index.errors import ModelUnavailable
from index.models.hashing import HashingEmbedder
from index.types import Extraction
from streams.chunk import ChunkConfig
from streams.extract.rules import RulesExtractor
from streams.pipeline import Pipeline

SMALL = ChunkConfig(least=4, most=12)
"""One or two short sentences a passage."""


class NotingExtractor(RulesExtractor):
    """The rules; `read` lists every text, "poison" in one raises, and `unavailable` calls fail before any succeeds."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.unavailable = 0

    def extract(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        if self.unavailable:
            self.unavailable -= 1
            raise ModelUnavailable("the model does not answer")
        if any("poison" in text for _, text in passages):
            raise ValueError("cannot read poison")
        self.read += [text for _, text in passages]
        return super().extract(passages)


class PaidNoting(NotingExtractor):
    """The same for money: one passage a call, done before `begin` returns."""

    concurrency = 1

    def begin(self, passage: tuple[str, str]) -> Future[Extraction]:
        done: Future[Extraction] = Future()
        try:
            done.set_result(self.extract([passage])[0])
        except Exception as error:
            done.set_exception(error)
        return done

    def fall_back(self, passage: tuple[str, str]) -> Extraction:
        return Extraction(degraded=True)


def small_pipeline(extractor: NotingExtractor | None = None) -> Pipeline:
    return Pipeline(SMALL, extractor or NotingExtractor(), HashingEmbedder(16))
