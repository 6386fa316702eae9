"""What a format gives: the title and the text of one document, or the reason why there is none."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A document as it was read; an empty title means that it has none of its own."""

    title: str
    text: str


class Unreadable(ValueError):
    """Bytes that are no document of this format; the message is one line that says what to do."""


def one_line(title: str, longest: int = 200) -> str:
    """`title` with single blanks; "" where it is longer than `longest` characters.

    A longer one is a paragraph in disguise, and a title is embedded with every passage.
    """
    line = " ".join(title.split())
    return line if len(line) <= longest else ""
