"""The normal forms and terms of a text: functions of its letters alone, on which writer and reader must agree."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from functools import lru_cache

import Stemmer

from .names import CONNECTORS, MOST_WORDS, Name, names, uncamel
from .sentences import sentences, spans

__all__ = [
    "CONNECTORS",
    "MOST_WORDS",
    "STOP_WORDS",
    "Name",
    "clean",
    "is_unspaced",
    "names",
    "norm",
    "sentences",
    "spans",
    "terms",
    "uncamel",
]

LONGEST_TERM = 64
"""Characters of a term; longer tokens (hashes, base64) are cut, in stored texts and in questions alike."""

STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being below between both but
    by can could did do does doing down during each few for from further had has have having he her here hers herself
    him himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only or
    other our ours ourselves out over own s same she should so some such t than that the their theirs them themselves
    then there these they this those through to too under until up very was we were what when where which while who
    whom whose why will with would you your yours yourself yourselves
    """.split()
)
"""English function words and question words: they say how a question is put, not what it is about."""

_KEPT_SYMBOLS = "#%&@"
_ELISION = re.compile(r"(?:n['’]t|['’](?:s|re|ve|ll|m|d))\b", re.IGNORECASE)
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_SCRIPTS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")


class _Blanks(dict[int, int]):
    """A table for str.translate, filled as characters are met: all but `kept` and those categories become blanks."""

    def __init__(self, categories: str, kept: str = "") -> None:
        super().__init__({ord(c): ord(c) for c in kept})
        self._categories = categories

    def __missing__(self, point: int) -> int:
        kept = unicodedata.category(chr(point))[0] in self._categories
        self[point] = point if kept else 32
        return self[point]


_TO_NORM = _Blanks("LMNS", _KEPT_SYMBOLS)
_TO_WORDS = _Blanks("LMN")


def clean(text: str) -> str:
    """Every run of white space becomes one blank; none at the ends."""
    return " ".join(text.split())


def is_unspaced(text: str) -> bool:
    """Whether there is a letter in it of a script that puts no blanks between words."""
    return not text.isascii() and _IS_UNSPACED.search(text) is not None


def norm(text: str) -> str:
    """Normal form of a name or relation, by which two spellings are the same thing (methods/cogito.md 2.2, step 5).

    NFKC, case folded, every character that is neither letter, mark, number nor symbol nor one of `# % & @` a blank,
    then `clean`. It may be empty; such a name is no name.
    """
    return _norm(text) if len(text) > LONGEST_TERM else _cached_norm(text)


def _norm(text: str) -> str:
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.translate(_TO_NORM).split())


_cached_norm = lru_cache(maxsize=1 << 12)(_norm)


def terms(text: str) -> dict[str, int]:
    """The BM25 terms of a text with their frequencies.

    Words of any script, case folded, without stop words, stemmed by Snowball's English stemmer. `LiHua` counts as
    `lihua`, `li` and `hua`. Scripts without blanks between words give overlapping pairs of characters (Lucene's
    CJKAnalyzer).
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if "'" in text or "’" in text:
        text = _ELISION.sub(" ", text)
    counts: dict[str, int] = {}
    for token, times in Counter(text.translate(_TO_WORDS).split()).items():
        for term in _token_terms(token[:LONGEST_TERM]):
            counts[term] = counts.get(term, 0) + times
    return counts


class _English(threading.local):
    """One stemmer a thread: Snowball's state is not safe to share."""

    def __init__(self) -> None:
        # Words are remembered below, once for all threads.
        self.stem = Stemmer.Stemmer("english", maxCacheSize=0).stemWord


_english = _English()


@lru_cache(maxsize=1 << 14)
def _token_terms(token: str) -> tuple[str, ...]:
    if is_unspaced(token):
        return tuple(term for run in _SCRIPTS.findall(token) for term in _run_terms(run))
    whole = _word_terms(token)
    parts = uncamel(token).split()
    return whole if len(parts) == 1 else (*whole, *(term for part in parts for term in _word_terms(part)))


def _run_terms(run: str) -> tuple[str, ...]:
    if not _IS_UNSPACED.match(run):
        return _word_terms(run)
    return tuple(run[i : i + 2] for i in range(max(1, len(run) - 1)))


def _word_terms(word: str) -> tuple[str, ...]:
    folded = word.casefold()
    return () if folded in STOP_WORDS else (_english.stem(folded),)
