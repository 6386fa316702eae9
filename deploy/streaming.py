"""The server beside workers: what it accepts goes to Kafka, and what they have made of it is visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from index.metrics import Metrics
from index.types import DocumentEvent, Inbox
from query.history import History
from query.parts import Parts
from query.readers import Readers

from .assembly import build_embedder, limits, open_book, open_book_if_any
from .feed_status import statuses
from .feeding import Feeding
from .measured import MeasuredEmbedder
from .progress import Progress
from .receiving import receiver
from .server import Server
from .settings import Settings
from .stream import Stream


@dataclass(frozen=True, slots=True)
class _Checked:
    """An inbox that refuses at once while Kafka cannot be used: if each request waited for that to be found out anew,
    no thread would be left for questions.
    """

    inside: Inbox
    check: Callable[[], None]

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        """See Inbox."""
        self.check()
        return self.inside.append(events)


class Streaming(Server):
    """Answers from the snapshots of a data folder that workers write, and stores in Kafka what is sent to it.

    While no broker can be reached, it answers from what is visible, and whoever sends something is told to try again.
    """

    def __init__(self, settings: Settings, *, read_only: bool = False) -> None:
        super().__init__(settings)
        self._read_only = read_only

    def _parts(self, stack: ExitStack, readers: Readers, history: History, metrics: Metrics) -> Parts:
        """Raises BadRequest where the settings of Kafka do not fit together, StoreError where the book of feeds cannot
        be opened.
        """
        settings, most = self._settings, limits(self._settings)
        stream = stack.enter_context(Stream(settings))
        progress = stack.enter_context(Progress(stream, readers.home))
        progress.watch(metrics)
        inbox = _Checked(stream, progress.check)
        book = stack.enter_context(open_book_if_any(settings) if self._read_only else open_book(settings))
        if book and settings.run_feeds and not self._read_only:
            stack.enter_context(Feeding(settings, book, stream, stream.letters, metrics)).start()
        return Parts(
            readers=readers,
            history=history,
            embedders=self._embedders(MeasuredEmbedder(build_embedder(settings), metrics), metrics),
            decode=self._decode,
            inbox=None if self._read_only else inbox,
            staleness=progress.staleness,
            dead_letters=progress.letters,
            not_ready=progress.trouble,
            metrics=metrics,
            receive=None if self._read_only else receiver(inbox, stream.letters, most),
            feeds=partial(statuses, book) if book else dict,
            max_wait=settings.wait_timeout,
        )
