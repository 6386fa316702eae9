"""What models have to say about an event: asked for at once where it is not known, and kept when it is there."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from index.errors import StoreError
from index.home import Home
from index.metrics import Metrics
from index.plan import texts_of
from index.types import Extraction, Passage

from .apply import passages_of
from .extract.base import Text
from .pipeline import Pipeline, understanding_of
from .understand import LAST_SECONDS, Understood
from .window import Entry

MOST_OPEN: Final = 64
"""Namespaces whose understanding is held open, unless more of them have events under way."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An event whose passages are being read."""

    entry: Entry
    passages: Sequence[Passage] = ()
    answers: Sequence[Future[Extraction]] = ()
    """Of the passages that were not known."""
    unread: int = 0
    """Passages that wait for no answer, and still cost a call."""

    @property
    def under_way(self) -> int:
        """Passages that a model has not dealt with."""
        return self.unread + sum(not answer.done() for answer in self.answers)

    @property
    def is_read(self) -> bool:
        """Whether every passage has been read, and well."""
        return all(answer.done() and answer.exception() is None for answer in self.answers)

    @property
    def error(self) -> BaseException | None:
        """Why a passage could not be read; None while all are there or under way."""
        return next((answer.exception() for answer in self.answers if answer.done() and answer.exception()), None)


class Buyer:
    """Has what models say about events bought, once, and kept in the understanding of their namespaces.

    Where nothing is kept of what a pipeline understands, since its models cost nothing, nothing is bought. One thread
    uses it.
    """

    def __init__(self, home: Home, pipeline: Pipeline, metrics: Metrics) -> None:
        self._home = home
        self._pipeline = pipeline
        self._metrics = metrics
        self._open: OrderedDict[str, Understood] = OrderedDict()
        """The least recently used first."""
        self._begun: Counter[str] = Counter()
        """Events by namespace that are begun and not kept."""

    def begin(self, name: str, entry: Entry, on_answer: Callable[[], None]) -> Begun:
        """Have the passages of an event of this namespace read. Does not wait; `on_answer` is called from any thread.

        Raises StoreError and OSError, and what cutting the document into passages raises.
        """
        self._begun[name] += 1
        if entry.accepted is None or entry.is_given_up or not self._pipeline.keeps:
            return Begun(entry)
        passages = passages_of(entry.accepted, self._pipeline.chunker)
        reading = self._known(name).reading
        if reading is None:
            return Begun(entry, passages, unread=len(passages))
        begun = Begun(entry, passages, reading.begin(_texts(passages)))
        for answer in begun.answers:
            answer.add_done_callback(lambda _: on_answer())
        return begun

    def keep(self, name: str, read: Sequence[Begun]) -> None:
        """Have everything kept about events whose passages are read, vectors included, which is waited for.

        Raises what the embedder raises, StoreError and OSError; nothing that was bought is lost then.
        """
        if passages := [passage for begun in read for passage in begun.passages]:
            known = self._known(name)
            texts = _texts(passages)
            extractions = (known.reading or self._pipeline.extractor.extract)(texts)
            if known.embed is not None:
                made = [replace(one, extraction=said) for one, said in zip(passages, extractions, strict=True)]
                known.embed(texts_of(made, self._pipeline.fingerprint))
            self._metrics.count("gistream_passages_understood_total", len(passages))
        self._begun[name] -= len(read)
        if not self._begun[name]:
            del self._begun[name]

    def call_off(self, name: str, error: Exception) -> None:
        """Forget what was begun for a namespace because of this error; calls under way are kept when they end."""
        del self._begun[name]
        if (known := self._open.get(name)) is None:
            return
        if isinstance(error, StoreError | OSError):
            # Whoever opens it anew looks at its files.
            del self._open[name]
            known.release()
        elif known.reading is not None:
            known.reading.call_off()

    def close(self) -> None:
        """Wait for the calls under way, which are paid for, but not longer for many namespaces than for one.

        Raises StoreError and OSError where something cannot be kept.
        """
        deadline = time.monotonic() + LAST_SECONDS
        with ExitStack() as stack:
            for known in self._open.values():
                stack.callback(_close, known, deadline)
            self._open.clear()

    def _known(self, name: str) -> Understood:
        if name not in self._open:
            idle = [other for other in self._open if other not in self._begun]
            for other in idle[: max(0, len(self._open) + 1 - MOST_OPEN)]:
                self._open.pop(other).close()
            self._open[name] = understanding_of(self._home, name, self._pipeline)
        self._open.move_to_end(name)
        return self._open[name]


def _texts(passages: Sequence[Passage]) -> list[Text]:
    return [(passage.title, passage.text) for passage in passages]


def _close(known: Understood, deadline: float) -> None:
    known.close(max(0.0, deadline - time.monotonic()))
