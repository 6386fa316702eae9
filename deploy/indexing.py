"""Seeing to it that events in the log become visible: by a runner of this process, or by the one that another has."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, partial
from typing import Final, Self

from index.errors import GistreamError, WriterBusy
from index.home import Home
from index.token import Token
from index.types import DocumentEvent
from streams.apply import Applied
from streams.dead_letters import DeadLetter, DeadLetters
from streams.local import Runner
from streams.log import Log
from streams.position import reached

from .assembly import build_pipeline, pace
from .settings import Settings

POLL_SECONDS: Final = 0.02
_PAGE: Final = 1000


class Awaited:
    """The events that a command appended, and how far the newest snapshots are with them; 16 bytes an event."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._positions = array("q")
        self._waiting: dict[str, array[int]] = {}
        """Positions by namespace; a namespace leaves when its last event is visible."""
        self._done = 0
        self.last: str | None = None
        """The token of the last of them."""

    def add(self, events: Sequence[DocumentEvent], tokens: Sequence[str]) -> None:
        """Wait for these too; they come in the order of the log."""
        for event, token in zip(events, tokens, strict=True):
            position = Token.parse(token).position
            self._positions.append(position)
            self._waiting.setdefault(event.namespace, array("q")).append(position)
            self.last = token

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, position: object) -> bool:
        if not isinstance(position, int):
            return False
        at = bisect_left(self._positions, position)
        return at < len(self._positions) and self._positions[at] == position

    def namespaces(self) -> Collection[str]:
        """Those that still have events to wait for."""
        return self._waiting.keys()

    def visible(self) -> int:
        """How many of them a snapshot reflects by now."""
        seen = 0
        for name, positions in list(self._waiting.items()):
            visible = bisect_right(positions, reached(self._home, name))
            if visible < len(positions):
                seen += visible
            else:
                self._done += visible
                del self._waiting[name]
        return self._done + seen


class Indexing:
    """Applies the log of a data folder while no other process does, and takes over when that one ends."""

    def __init__(
        self,
        settings: Settings,
        log: Log,
        on_batch: Callable[[str, Applied], None] = lambda namespace, applied: None,
    ) -> None:
        self._settings = settings
        self._home = Home(settings.data)
        self._log = log
        self._pipeline = cache(partial(build_pipeline, settings))
        self._on_batch = on_batch
        self._runner: Runner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            self._runner.close()

    def attend(self, names: Collection[str] = ()) -> None:
        """Start a runner unless there is one, here or in another process.

        Raises what stopped our own, and what keeps it from indexing one of `names`, unless trying again may help.
        """
        if self._runner is None:
            try:
                self._runner = Runner(
                    self._home, self._log, self._pipeline(), pace=pace(self._settings), on_batch=self._on_batch
                )
            except WriterBusy:
                return
            self._runner.start()
        if self._runner.error is not None:
            raise self._runner.error
        for error in filter(None, map(self._runner.troubles.of, names)):
            if not (isinstance(error, GistreamError) and error.recoverable):
                raise error

    def until_visible(self, awaited: Awaited) -> Iterator[int]:
        """Wait until every awaited event is in a snapshot; comes back with the number of those that are."""
        while (visible := awaited.visible()) < len(awaited):
            self.attend(awaited.namespaces())
            yield visible
            time.sleep(POLL_SECONDS)
        yield visible


def waiting_letters(letters: DeadLetters) -> Iterator[DeadLetter]:
    """Every dead letter that waits, oldest first."""
    after = 0
    while page := letters.waiting(limit=_PAGE, after=after):
        yield from page
        after = page[-1].number


def refused(letters: DeadLetters, awaited: Awaited) -> list[DeadLetter]:
    """The awaited events that could not be indexed and went to the dead letters."""
    return [letter for letter in waiting_letters(letters) if letter.position in awaited]
