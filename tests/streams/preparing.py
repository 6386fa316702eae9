"""The understanding stage by hand: models that answer when they are told to, and one worker over one partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import GistreamError
from index.home import Home
from index.metrics import Metrics
from index.models.base import Embedder
from index.models.hashing import HashingEmbedder
from index.types import Accepted, DocumentEvent, Extraction, Role
from streams.chunk import WHOLE
from streams.extract.base import Text
from streams.extract.rules import RulesExtractor
from streams.pipeline import Pipeline
from streams.prepare import Preparer
from streams.window import Entry, Window

from .stubs import PaidNoting

SOURCE = "documents-0"


class Held(PaidNoting):
    """Answers when it is told to: all at once while `open`, else what is let go by text."""

    concurrency = 2

    def __init__(self, *, is_open: bool = False) -> None:
        super().__init__()
        self.open = is_open
        self.begun: list[str] = []
        self.futures: dict[str, Future[Extraction]] = {}
        self.errors: dict[str, Exception] = {}

    def begin(self, passage: Text) -> Future[Extraction]:
        text = passage[1]
        self.begun.append(text)
        future = self.futures[text] = Future[Extraction]()
        future.set_running_or_notify_cancel()
        if self.open or text in self.errors:
            self.let_go(text)
        return future

    def let_go(self, *texts: str) -> None:
        for text in texts:
            if (error := self.errors.get(text)) is not None:
                self.futures[text].set_exception(error)
            else:
                self.futures[text].set_result(self.extract([("", text)])[0])

    @property
    def in_flight(self) -> list[str]:
        return [text for text, future in self.futures.items() if not future.done()]


class Remote(HashingEmbedder):
    """An embedder that notes what it is asked for, and may be away."""

    remote = True

    def __init__(self) -> None:
        super().__init__(16)
        self.asked: Counter[str] = Counter()
        self.error: Exception | None = None

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        if self.error is not None:
            raise self.error
        self.asked.update(texts)
        return super().embed(texts, role)


class Case:
    """One worker that understands, over one partition; what it tells is in `told`."""

    def __init__(self, folder: Path, extractor: RulesExtractor, embedder: Embedder | None = None) -> None:
        self.home = Home(folder)
        self.pipeline = Pipeline(WHOLE, extractor, embedder or HashingEmbedder(16))
        self.sent: list[Accepted] = []
        self.told: list[list[str]] = []
        self.refusals: list[GistreamError] = []
        """What the next attempts to tell raise."""
        self.attempts: list[list[str]] = []
        self.restart()

    def restart(self) -> None:
        """Another worker takes the partition; the events that were sent come again by `offer`."""
        self.window = Window()
        self.preparer = Preparer(self.home, self.window, self.pipeline, self.publish, Metrics())

    def publish(self, batch: Sequence[Accepted]) -> None:
        ids = [one.event.id for one in batch]
        self.attempts.append(ids)
        if self.refusals:
            raise self.refusals.pop(0)
        self.told.append(ids)

    def send(self, *ids: str, namespace: str = "ada", text: str | None = None) -> None:
        for id in ids:
            event = DocumentEvent(namespace=namespace, id=id, text=id if text is None else text)
            self.sent.append(Accepted(len(self.sent), 0, event, {SOURCE: len(self.sent)}))
            self.offer(self.sent[-1])

    def offer(self, *events: Accepted) -> None:
        for one in events:
            self.window.offer(Entry(0, one.position, 1, one))

    @property
    def ids(self) -> list[str]:
        """All that was told, in order."""
        return [id for batch in self.told for id in batch]

    def steps(self, count: int = 50) -> None:
        for _ in range(count):
            self.preparer.step()
