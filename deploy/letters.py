"""The dead letters of an installation, for its commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from index.token import Token
from streams.letter import DeadLetter, LetterBox

from .awaited import Awaited

_PAGE: Final = 1000


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
