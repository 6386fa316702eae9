"""The dead letters of an installation, for its commands: those beside its log, or those of its topic in Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from index.token import Token

from .assembly import log_path, open_log

if TYPE_CHECKING:
    from streams.letter import DeadLetter, LetterBox

    from .awaited import Awaited
    from .settings import Settings

LOOK_SECONDS: Final = 1.0
"""Between two looks whether something that is waited for was refused."""
_PAGE: Final = 1000


@contextmanager
def open_letters(settings: Settings) -> Iterator[LetterBox]:
    """The box that the settings mean. Raises StoreError or BrokerError where it cannot be opened, or later read."""
    if settings.kafka_bootstrap is None:
        from streams.dead_letters import DeadLetters

        with open_log(settings) as log:
            yield DeadLetters(log)
        return
    from .stream import Stream

    with Stream(settings) as stream:
        yield stream.letters


def count_letters(settings: Settings) -> int:
    """How many wait. Makes nothing: without a log nothing has died. Raises as `open_letters` does."""
    if settings.kafka_bootstrap is None and not log_path(settings).exists():
        return 0
    with open_letters(settings) as letters:
        return letters.count()


def waiting_letters(letters: LetterBox, after: int = 0) -> Iterator[DeadLetter]:
    """Every dead letter that waits, oldest first, with a number above `after`."""
    while page := letters.waiting(limit=_PAGE, after=after):
        yield from page
        after = page[-1].number


class Refusals:
    """Awaited events that cannot be indexed, noticed as they come to the dead letters: nobody waits for them longer."""

    def __init__(self, letters: LetterBox, awaited: Awaited) -> None:
        self._letters = letters
        self._awaited = awaited
        self._seen = 0
        self._look_at = time.monotonic() + LOOK_SECONDS

    def look(self) -> None:
        """Settle those that have come since the last look; does nothing where that was just now."""
        if time.monotonic() < self._look_at:
            return
        for letter in waiting_letters(self._letters, self._seen):
            self._seen = letter.number
            if (token := _token(letter)) is not None and token in self._awaited:
                self._awaited.settle(token)
        self._look_at = time.monotonic() + LOOK_SECONDS


def refused(letters: LetterBox, awaited: Awaited) -> list[DeadLetter]:
    """The awaited events that could not be indexed and went to the dead letters."""
    return [letter for letter in waiting_letters(letters) if (token := _token(letter)) is not None and token in awaited]


def _token(letter: DeadLetter) -> Token | None:
    return None if letter.position is None else Token(letter.source, letter.position)
