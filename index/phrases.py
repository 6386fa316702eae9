"""Phrase search: which passages hold exactly these words in a row, found through full text and decided by the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lance.query import PhraseQuery

from .errors import BadRequest, StoreError
from .indexes import WORDS, has_index
from .text import is_unspaced
from .types import Key

_WORD = re.compile(r"[^\W_]+")
_INSIDE = r"[^\W_]"
_BETWEEN = r"[\W_]+"


def holders(passages: Any, phrase: str) -> list[Key]:
    """Keys of the rows of a pinned table of passages that hold the phrase in their title or text, in no order.

    Words are runs of letters and digits; their case, and what stands between them, do not matter. In scripts without
    blanks between words a phrase may begin and end anywhere. Where the table has full text indexes, and in them words
    of scripts with blanks, they name the candidates, rows that they do not cover yet included; otherwise every row is
    read. Raises BadRequest for a phrase without a word, StoreError where the table cannot be read.
    """
    words = _WORD.findall(phrase.lower())
    if not words:
        hint = "give the words that must stand in a row"
        raise BadRequest(f"the phrase {phrase[:80]!r} has no word", hint=hint)
    holds = _pattern(words).search
    indexed = not is_unspaced(phrase) and all(has_index(passages, name) for name in WORDS.values())
    found: set[Key] = set()
    try:
        for key, text in _candidates(passages, " ".join(words)) if indexed else _all(passages):
            if holds(text.lower()):
                found.add(key)
    except (OSError, RuntimeError, ValueError) as error:
        raise StoreError(f"{passages.uri} cannot be searched at version {passages.version}: {error}") from error
    return list(found)


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    first = "" if is_unspaced(words[0][0]) else f"(?<!{_INSIDE})"
    last = "" if is_unspaced(words[-1][-1]) else f"(?!{_INSIDE})"
    return re.compile(first + _BETWEEN.join(map(re.escape, words)) + last)


def _candidates(passages: Any, words: str) -> Iterator[tuple[Key, str]]:
    for column in WORDS:
        query = PhraseQuery(words, column)
        yield from _pairs(passages.scanner(columns=["key", column, "_score"], full_text_query=query), column)


def _all(passages: Any) -> Iterator[tuple[Key, str]]:
    for column in WORDS:
        yield from _pairs(passages.scanner(columns=["key", column]), column)


def _pairs(scanner: Any, column: str) -> Iterator[tuple[Key, str]]:
    for batch in scanner.to_batches():
        yield from zip(batch["key"].to_pylist(), batch[column].to_pylist(), strict=True)
