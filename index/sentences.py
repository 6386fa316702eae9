"""Where a text's sentences begin and end: spans that tile the text, found in one pass."""

from __future__ import annotations

import re
from functools import lru_cache

MOST_WORDS = 60
MOST_CHARACTERS = 600
"""Bounds of one piece: a longer stretch without a full stop is cut at blanks, or inside a word that is longer still."""

_TITLES = frozenset(
    "mr mrs ms messrs dr prof st ste rev hon gen col maj capt lt sgt cpl gov sen rep pres mt ft fr".split()
)
"""Abbreviations that a name always follows."""

_ABBREVIATIONS = frozenset(
    """
    jr sr inc ltd co corp llc plc bros dept univ assn vs etc al approx ca cf eg ie e.g i.e a.m p.m vol vols no nos pp
    ed eds fig figs ch sec est jan feb mar apr jun jul aug sept sep oct nov dec ave blvd rd ph.d b.a m.a d.c u.s u.k
    """.split()
)
"""Abbreviations that may also end a sentence; what follows decides."""

_OPENERS = frozenset(
    """
    The A An He She It They We You This That These Those There Here His Her Its Their Our In On At By From For With
    During Since After Before While When Where Although Though As But And However If Then Some Many Most Both Each
    Another Other One Two Several According Also Today Later What Who Why How
    """.split()
)
"""Capitalised words that are no part of a name: after an initial or an abbreviation they open a new sentence."""

_CLOSERS = "\"'”’»)\\]』」"
_UNSPACED = "。！？｡．"
_SPACED = ".!?…؟۔।॥"
"""Marks that end a sentence in scripts without and with blanks."""

_STOP = re.compile(
    rf"[\n{_UNSPACED}{_SPACED}]"  # a class at the front, so that `re` leaps from mark to mark
    rf"(?:(?<=\n)\s*"
    rf"|(?<=[{_UNSPACED}])[{_UNSPACED}]*+[{_CLOSERS}]*+\s*+"
    rf"|[{_SPACED}]*+[{_CLOSERS}]*+(?:\s++|\Z))"
)
_UP_TO_LAST_WORD = re.compile(r"(?s:.*)[\s\"'“‘(\[]")
_FIRST_WORD = re.compile(r"[^\W\d_]+(?!\.)")
_WORD = re.compile(r"\S+\s*")


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without the white space around them; none is empty."""
    return list(_sentences(text))


@lru_cache(maxsize=1 << 10)
def _sentences(text: str) -> tuple[str, ...]:
    # Who reads a passage and who indexes its sentences ask one after the other.
    pieces = (text[start:end].strip() for start, end in spans(text))
    return tuple(piece for piece in pieces if piece)


def spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of the sentences in characters: they tile the text, white space belongs to the sentence before it.

    A full stop of any script, a line's end, `!` and `?` end a sentence; the stop of an abbreviation, of an initial, of
    a list's number or before a lower-case word does not. No sentence has more than 60 words or 600 characters.
    """
    tiles: list[tuple[int, int]] = []
    start = 0
    for stop in _STOP.finditer(text):
        mark = stop[0]
        if mark[0] in ".!?…" and "\n" not in mark and not _ends(text, start, stop):
            continue
        tiles.extend(_bounded(text, start, stop.end()))
        start = stop.end()
    if start < len(text):
        tiles.extend(_bounded(text, start, len(text)))
    return tiles


def _ends(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a Western stop, followed by a blank or the end of the text, ends the sentence that began at `start`."""
    at, after = stop.span()
    if after == len(text):
        return True
    follower = text[after]
    if stop[0].rstrip() != ".":
        return not follower.islower()
    word_start = max(start, at - 20)
    before = _UP_TO_LAST_WORD.match(text, word_start, at)
    word = text[before.end() if before else word_start : at]
    lower = word.lower()
    if lower in _TITLES:
        return False
    if at - start <= 3 and text[start:at].strip().isalnum():
        return False  # "1." or "a." opens an item of a list
    if follower.islower():
        return len(word) > 3 and "." not in word and lower not in _ABBREVIATIONS
    if lower in _ABBREVIATIONS or (len(word.rpartition(".")[2]) == 1 and word[-1].isalpha()):
        following = _FIRST_WORD.match(text, after)
        return following is not None and following[0] in _OPENERS
    return True


def _bounded(text: str, start: int, end: int) -> list[tuple[int, int]]:
    length = end - start
    if length <= MOST_WORDS * 2 or (length <= MOST_CHARACTERS and len(text[start:end].split()) <= MOST_WORDS):
        return [(start, end)]
    pieces: list[tuple[int, int]] = []
    words = 0
    for word in _WORD.finditer(text, start, end):
        if words and (words == MOST_WORDS or word.end() - start > MOST_CHARACTERS):
            pieces.append((start, word.start()))
            start, words = word.start(), 0
        words += 1
        while word.end() - start > MOST_CHARACTERS:
            pieces.append((start, start + MOST_CHARACTERS))
            start += MOST_CHARACTERS
    if start < end:
        pieces.append((start, end))
    return pieces
