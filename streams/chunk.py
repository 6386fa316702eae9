"""A document's text cut into passages at places that its own sentences choose, so that an edit stays local."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from math import ceil
from typing import Literal, NamedTuple

from index.keys import passage_key
from index.sentences import spans
from index.types import Key

_BYTES_PER_WORD = 10
"""Ten bytes of UTF-8 are a word at least, so that scripts without blanks and machine text give bounded passages."""


@dataclass(frozen=True, slots=True)
class ChunkConfig:
    """How documents are cut; part of an index's fingerprint.

    `content` packs sentences into passages of `least` to `most` words, about 90 on average with the defaults; only a
    sentence of more than `most` - 2 * `least` words can break the bounds. `whole` makes one passage of the whole text,
    for collections that come already cut.
    """

    name: Literal["content", "whole"] = "content"
    least: int = 50
    most: int = 180

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most // 3:
            raise ValueError(f"a passage needs 1 <= least <= most / 3 words, not {self.least} and {self.most}")

    @property
    def fingerprint(self) -> str:
        return "whole-1" if self.name == "whole" else f"content-1:{self.least}-{self.most}"


CONTENT = ChunkConfig()
WHOLE = ChunkConfig("whole")


class _End(NamedTuple):
    """The end of a sentence, where a passage may end."""

    words: int
    """Words of the document up to here."""
    rank: bytes
    """Hash of the sentence that ends here."""
    character: int


def keyed(namespace: str, document: str, text: str, config: ChunkConfig = CONTENT) -> list[tuple[Key, str]]:
    """(key, text) of a document's passages in reading order; equal passages of one document get different keys."""
    seen: Counter[str] = Counter()
    rows: list[tuple[Key, str]] = []
    for passage in chunk(text, config):
        rows.append((passage_key(namespace, document, passage, seen[passage]), passage))
        seen[passage] += 1
    return rows


def chunk(text: str, config: ChunkConfig = CONTENT) -> list[str]:
    """The passages of a text in order; together they hold every character of it that is not white space.

    A passage ends after a sentence whose hash is smaller than that of every other one ending within `least` words. That
    depends on those few sentences only, so an edit moves no boundary farther away. What is still longer than `most`
    words is cut at the smallest hashes that leave pieces of at least `least`. A blank text gives no passage.
    """
    if not text.strip():
        return []
    if config.name == "whole":
        return [text]
    ends = _ends(text)
    cuts: list[int] = []
    start = 0
    for cut in [*_minima(ends, config.least), len(ends) - 1]:
        cuts.extend(_packed(ends, start, cut, config))
        start = cut + 1
    passages: list[str] = []
    begin = 0
    for cut in cuts:
        passages.append(text[begin : ends[cut].character].strip())
        begin = ends[cut].character
    return [passage for passage in passages if passage]


def _ends(text: str) -> list[_End]:
    tiles = spans(text)
    pieces = [text[start:end].strip().encode() for start, end in tiles]
    words = accumulate(max(len(piece.split()), ceil(len(piece) / _BYTES_PER_WORD)) for piece in pieces)
    return [
        _End(count, blake2b(piece, digest_size=8).digest(), end)
        for count, piece, (_, end) in zip(words, pieces, tiles, strict=True)
    ]


def _minima(ends: Sequence[_End], least: int) -> list[int]:
    """Places whose rank is the smallest within `least` words, in which neither end of the document lies."""
    total = ends[-1].words
    return [
        place
        for place, end in enumerate(ends)
        if least <= end.words <= total - least and _is_minimum(ends, place, least)
    ]


def _is_minimum(ends: Sequence[_End], place: int, least: int) -> bool:
    here = ends[place]
    before = place - 1
    while before >= 0 and here.words - ends[before].words < least:
        if ends[before].rank <= here.rank:
            return False  # of equal neighbours the first is the smallest
        before -= 1
    after = place + 1
    while after < len(ends) and ends[after].words - here.words < least:
        if ends[after].rank < here.rank:
            return False
        after += 1
    return True


def _packed(ends: Sequence[_End], first: int, last: int, config: ChunkConfig) -> list[int]:
    """Where to cut the stretch of sentences `first` to `last`; the last cut is `last` itself."""
    cuts: list[int] = []
    begun = ends[first - 1].words if first else 0
    total = ends[last].words
    while total - begun > config.most:
        best: int | None = None
        for place in range(first, last):
            if ends[place].words > min(begun + config.most, total - config.least) and best is not None:
                break
            if ends[place].words - begun >= config.least and (best is None or ends[place].rank <= ends[best].rank):
                best = place
        if best is None:
            break
        cuts.append(best)
        first, begun = best + 1, ends[best].words
    return [*cuts, last]
