"""Passages to extractions by a paid extractor: each is bought once, and kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from functools import partial

from index.types import Extraction
from index.understanding import Understanding

from .extract.base import PaidExtractor, Text

LAST_SECONDS = 10.0
"""How long a namespace that is closed waits for answers; one that comes later may be paid for again."""


class Reading:
    """How the passages of one namespace are understood: known, under way, or begun now.

    One thread uses it; the extractor's threads only keep what they have read. What the extractor said is kept at once
    under the text's address, so nothing that ends this process or this batch has it paid for again. A degraded reading
    is never kept: it is held for whoever asks next, once.
    """

    def __init__(self, known: Callable[[], Understanding], extractor: PaidExtractor) -> None:
        """`known` opens the namespace's understanding; it is called when the first passage is read."""
        self._known = known
        self._extractor = extractor
        self._under_way: dict[Text, Future[Extraction]] = {}

    def __call__(self, passages: Sequence[Text]) -> list[Extraction]:
        """One extraction for each passage, in their order; blocks until all are there.

        Raises what the extractor raises, at its first failure: what is finished stays kept, what has not begun is
        called off. Raises OSError where an answer cannot be kept.
        """
        found, futures = self._start(passages)
        try:
            wait(futures.values(), return_when=FIRST_EXCEPTION)
            for passage, future in futures.items():
                if future.done():
                    found[passage] = extraction = future.result()
                    if not extraction.degraded:
                        self._known().keep(passage, self._extractor.fingerprint, extraction)
        except BaseException:
            self.call_off()
            raise
        for passage in futures:
            self._under_way.pop(passage, None)
        if passages:
            self._known().gather()
        return [found[passage] for passage in passages]

    def begin(self, passages: Sequence[Text]) -> None:
        """Have those read that are neither known nor under way, for whoever asks later. Does not wait for them."""
        self._start(passages)

    @property
    def under_way(self) -> int:
        """Passages that were begun and are not finished."""
        return sum(not future.done() for future in list(self._under_way.values()))

    def waits_for(self, passages: Sequence[Text]) -> bool:
        """Whether one of these is being read now."""
        return any(not future.done() for passage in passages if (future := self._under_way.get(passage)) is not None)

    def call_off(self) -> None:
        """Forget what has not begun, which costs nothing, and what failed; calls under way are kept when they end."""
        for passage, future in list(self._under_way.items()):
            if future.cancel() or (future.done() and future.exception() is not None):
                self._under_way.pop(passage, None)

    def close(self) -> None:
        """Call off what has not begun, and wait for calls under way: they are paid for."""
        self.call_off()
        wait(list(self._under_way.values()), timeout=LAST_SECONDS)

    def _start(self, passages: Sequence[Text]) -> tuple[dict[Text, Extraction], dict[Text, Future[Extraction]]]:
        """What is known already, and the futures of all others."""
        # First those under way: one that ends between the two looks is known by the second.
        futures = {passage: future for passage in passages if (future := self._under_way.get(passage)) is not None}
        unknown = [passage for passage in dict.fromkeys(passages) if passage not in futures]
        found: dict[Text, Extraction] = {}
        if unknown:
            said = self._known().said(unknown, self._extractor.fingerprint)
            for passage, extraction in zip(unknown, said, strict=True):
                if extraction is not None:
                    found[passage] = extraction
                else:
                    futures[passage] = self._begin(passage)
        return found, futures

    def _begin(self, passage: Text) -> Future[Extraction]:
        future = self._under_way[passage] = self._extractor.begin(passage)
        future.add_done_callback(partial(self._finished, passage))
        return future

    def _finished(self, passage: Text, future: Future[Extraction]) -> None:
        """Keep an answer in the very thread that got it."""
        if future.cancelled() or future.exception() is not None or future.result().degraded:
            return
        try:
            self._known().keep(passage, self._extractor.fingerprint, future.result())
        except OSError:
            # It is not lost: whoever asks for the passage keeps it, or says why not.
            return
        self._under_way.pop(passage, None)
