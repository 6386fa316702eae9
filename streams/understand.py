"""Passages to extractions and texts to vectors by paid models: each is bought once, and kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from functools import partial

import numpy as np
from numpy.typing import NDArray

from index.models.base import Embedder
from index.plan import Embed
from index.types import Extraction
from index.understanding import Understanding

from .extract.base import Extractor, PaidExtractor, Text

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

    def begin(self, passages: Sequence[Text]) -> Sequence[Future[Extraction]]:
        """Have those read that are neither known nor under way, for whoever asks later. Does not wait for them.

        Returns the futures of all that are not known, for whoever wants to wait.
        """
        _, futures = self._start(passages)
        return list(futures.values())

    @property
    def under_way(self) -> int:
        """Passages that were begun and are not finished."""
        return sum(not future.done() for future in list(self._under_way.values()))

    def call_off(self) -> None:
        """Forget what has not begun, which costs nothing, and what failed; calls under way are kept when they end."""
        for passage, future in list(self._under_way.items()):
            if future.cancel() or (future.done() and future.exception() is not None):
                self._under_way.pop(passage, None)

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Call off what has not begun, and wait at most so long for calls under way: they are paid for."""
        self.call_off()
        wait(list(self._under_way.values()), timeout=seconds)

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


class Understood:
    """How the texts of one namespace are understood: by way of what is kept about them, where models are slow or paid.

    Nothing is opened before the first text needs it. One thread uses it; many processes may, each its own, whether or
    not the namespace exists yet. One whose namespace is deleted goes on with an empty understanding.
    """

    def __init__(self, known: Callable[[], Understanding], extractor: Extractor, embedder: Embedder) -> None:
        """`known` opens the namespace's understanding."""
        self._open = known
        self._known: Understanding | None = None
        self._embedder = embedder
        self.reading = Reading(self._opened, extractor) if isinstance(extractor, PaidExtractor) else None
        """Reads passages where the extractor is paid."""
        self.embed: Embed | None = self._vectors if embedder.remote else None
        """Texts to vectors (n, d), which are kept, where the embedder is remote. Raises what the embedder raises, and
        StoreError.
        """

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Wait at most so long for calls under way, keep what they bring, and let go. Raises StoreError and OSError."""
        if self.reading is not None:
            self.reading.close(seconds)
        if self._known is not None:
            self._known.close()

    def release(self) -> None:
        """Call off what has not begun, and let go of the rest as it is: whoever opens it next goes on with it."""
        if self.reading is not None:
            self.reading.call_off()
        if self._known is not None:
            self._known.release()

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._opened().vectors(texts, self._embedder)

    def _opened(self) -> Understanding:
        if self._known is None:
            self._known = self._open()
        return self._known
