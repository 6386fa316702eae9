"""The dead letters of an installation, for its commands: those beside its log, or those of its topic in Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from index.token import Token

from .assembly import log_path, open_log

if TYPE_CHECKING:
    from streams.letter import DeadLetter, LetterBox

    from .awaited import Awaited
    from .settings import Settings

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


def waiting_letters(letters: LetterBox) -> Iterator[DeadLetter]:
    """Every dead letter that waits, oldest first."""
    after = 0
    while page := letters.waiting(limit=_PAGE, after=after):
        yield from page
        after = page[-1].number


def refused(letters: LetterBox, awaited: Awaited) -> list[DeadLetter]:
    """The awaited events that could not be indexed and went to the dead letters."""
    return [
        letter
        for letter in waiting_letters(letters)
        if letter.position is not None and Token(letter.source, letter.position) in awaited
    ]
