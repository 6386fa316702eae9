"""The names in a sentence, read off its capitals, quotes and connecting words (methods/fused.md, section 2)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

MOST_WORDS = 8
"""A longer run of capitals is a heading."""

CONNECTORS = frozenset("of the de la du van von der den di da del le al el y e".split())
"""Lower-case words that join the parts of one name."""

_CALENDAR = frozenset(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
_ARTICLES = frozenset(("the", "a", "an", "i"))
_FUNCTION_WORDS = _ARTICLES | frozenset(
    """
    about above according across after again against all along also although am among and another any are around as at
    be because been before behind being below beneath beside besides between beyond both but by bye can could despite
    did do does down due during each either even every few finally following for former from had has have he hello
    hence her here hey hi his how however if in inside instead into is it its just let like many may maybe me
    meanwhile more moreover most much my near neither nevertheless no none nor not now of off oh ok okay on once one
    only or other others otherwise our out outside over perhaps please rather several shall she should similarly since
    so some sometimes soon still such than thank thanks that their them then there therefore these they this those
    though through throughout thus to today together tomorrow too toward towards two under unfortunately unless unlike
    until up upon us very was we well were what when whenever where whereas whether which while who whom whose why
    will with within without would wow yeah yep yes yesterday yet you your
    """.split()
)
"""Words whose capital at the start of a sentence says nothing."""

# Python's `re` has no class for capitals, so it is spelled out; up to U+FFFF, where `re` looks a class up in a bitmap.
_UPPER = "".join(chr(point) for point in range(0x10000) if chr(point).isupper() or chr(point).istitle())
_CAP = f"[{re.escape(_UPPER)}]"
_LETTERS = "[\\w\u0300-\u036f]"
_TITLE_WORDS = r"(?:Mrs?|Ms|Dr|Prof|Ste?|Rev|Hon|Gen|Col|Maj|Capt|Lt|Sgt|Gov|Sen|Mt|Ft|Jr|Sr|Fr)\."
_PART = rf"(?:[-&]{_CAP}{_LETTERS}*+|-\d++|['’](?!(?:s|S|t|re|ve|ll|m|d)\b){_LETTERS}++)"
_WORD = rf"{_CAP}{_LETTERS}*+{_PART}*+"
_ATOM = rf"(?:{_TITLE_WORDS}|{_CAP}(?:\.{_CAP})+\b\.?|{_CAP}\.(?=\s+{_CAP})|{_WORD})"
_JOINT = rf"\s++(?:(?:{'|'.join(sorted(CONNECTORS))}|&)\s++){{0,3}}+"
# The capital is asked for first: it fails soonest. For the same reason quotations begin with their literal marks.
_RUN = re.compile(rf"(?={_CAP})(?<![\w'’-]){_ATOM}(?:{_JOINT}{_ATOM})*+")
_QUOTED = re.compile(
    r"\"(?<!\w\")(?P<straight>\w[^\"\n]{0,99}?)\"(?!\w)|“(?P<curly>[^”\n]{1,100})”|``\s*(?P<tex>[^'`\n]{1,100}?)\s*''"
    r"|«\s*(?P<angle>[^»\n]{1,100}?)\s*»|《(?P<book>[^》\n]{1,40})》|「(?P<corner>[^」\n]{1,40})」"
)
_WORD_AND_BLANK = re.compile(r"([^\s'’]++)\S*+\s*+")
_OPENING = re.compile(r"([\W_]*+)(?:[^\W_][\w .'’-]{0,39}:\s[\W_]*+)?")
_CAMEL = re.compile(r"(?=[A-Z][a-z])(?<=[A-Za-z][a-z])(?<!\bMc)(?<!\bMac)(?<!\bD[aeiu])(?<!\bL[ae])")


class Name(NamedTuple):
    """A name as it stands in a sentence; `start` and `end` are its place there in characters."""

    text: str
    start: int
    end: int
    doubtful: bool
    """A single capitalised word that opens the sentence, or what somebody says in it (after "Name: ").

    It is a name only if some sentence has it as a sure one.
    """


def uncamel(text: str) -> str:
    """`LiHua` -> `Li Hua`: account names are names. `McDonald`, `LaTeX` and `iPhone` stay whole."""
    return _CAMEL.sub(" ", text)


def names(sentence: str, *, opens: bool = True) -> list[Name]:
    """The names of a sentence in reading order; `opens` False: it was cut and begins inside one.

    Names are runs of capitalised words, joined by connectors such as "of the", and quoted titles. Leading articles,
    function words at the start of the sentence, months and weekdays are no names, nor is a run of more than 8 words.
    """
    return list(_names(sentence, opens))


@lru_cache(maxsize=1 << 12)
def _names(sentence: str, opens: bool) -> tuple[Name, ...]:
    quoted = [name for found in _QUOTED.finditer(sentence) if (name := _quotation(found)) is not None]
    openings = _openings(sentence) if opens else ()
    runs: list[Name] = []
    for run in _RUN.finditer(sentence):
        start, end = run.span()
        if (read := _in_run(run[0], start in openings)) is not None:
            text, at, doubtful = read
            runs.append(Name(text, start + at, end, doubtful))
    if not quoted:
        return tuple(runs)
    found: list[Name] = []
    for name in sorted([*quoted, *runs], key=lambda name: (name.start, -name.end)):
        if not found or name.end > found[-1].end:  # else it stands inside a quoted title
            found.append(name)
    return tuple(found)


def _openings(sentence: str) -> tuple[int, ...]:
    """Where a capital proves nothing: the first letter, and the first one after a speaker's "Name: "."""
    opening = _OPENING.match(sentence)
    return (opening.end(1), opening.end()) if opening else ()


@lru_cache(maxsize=1 << 12)
def _in_run(text: str, opening: bool) -> tuple[str, int, bool] | None:
    """The name in a run of capitals, the character where it begins there, and whether it is doubtful; None if none."""
    droppable = _FUNCTION_WORDS if opening else _ARTICLES
    at = 0
    while found := _WORD_AND_BLANK.match(text, at):
        word = found[1].lower()
        if word not in droppable and not (at and word in CONNECTORS):
            break
        at = found.end()
    written = uncamel(text[at:])
    words = written.lower().split()
    if not words or len(words) > MOST_WORDS or _CALENDAR.issuperset(words):
        return None
    doubtful = opening and at == 0 and len(words) == 1 and "." not in written
    return " ".join(written.split()), at, doubtful


def _quotation(found: re.Match[str]) -> Name | None:
    group = found.lastgroup or ""
    text = found[group].rstrip(" ,.;:")
    words = text.split()
    if not words or len(words) > MOST_WORDS or text.strip("?!").lower() in _FUNCTION_WORDS:
        return None
    # Titles capitalise their first and last word; speech and scare quotes hardly ever do both.
    if any(word[0].islower() for word in (words[0], words[-1])) or not any(letter.isalnum() for letter in text):
        return None
    return Name(" ".join(words), found.start(group), found.start(group) + len(text), False)
