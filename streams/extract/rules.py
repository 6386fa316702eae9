"""An extractor without a model: names as their capitals give them, linked by the words that stand between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from index.text import Name, clean, names, norm, sentences, uncamel
from index.types import Extraction, Triple

RELATION_WORDS = 8
"""A relation keeps the last words before its tail."""

LONGEST_GAP = 8
"""Words between two neighbouring names that are still linked directly; farther apart they only meet in the subject."""

STATEMENT_WORDS = 12
"""A sentence that names nothing but its subject is kept as a fact of this many words about the subject."""

_MONTH = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_DATE = re.compile(
    rf"\b(?:\d{{1,2}} {_MONTH}(?:,? \d{{4}})?|{_MONTH} \d{{1,2}}(?:,? \d{{4}})?(?!\d)|{_MONTH},? \d{{4}}"
    r"|\d{4}-\d{2}-\d{2}|(?:1\d|20)\d\ds?)\b"
)
_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
_SPEAKER = re.compile(r"([^\W_][\w.'’-]*(?: [\w.'’-]+){0,3}):\s")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


class RulesExtractor:
    """Reads names, dates and facts off the letters of a passage.

    Every sentence has a subject: whoever speaks it ("Name: ..."), else the passage's title, else the passage's first
    name. Each further name is a fact about the subject, neighbouring names are facts about each other, and a sentence
    without a further name is a statement about its subject. Dates are entities and words of relations but no ends of
    facts: a year links passages that have nothing else in common.
    """

    fingerprint = "rules-1"
    paid = False

    def extract(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        """Never raises; a passage without title and names has no facts."""
        return [_read(title, text) for title, text in passages]


def _read(title: str, text: str) -> Extraction:
    read = [(sentence, names(sentence)) for sentence in sentences(text)]
    sure = {norm(name.text) for _, found in read for name in found if not name.doubtful} - {""}
    speakers = _speakers(title, [sentence for sentence, _ in read])
    subject = _subject(title, read)
    about = norm(subject)
    sure.update(about.split())  # a word of the title that opens a sentence is a name
    entities = {about: subject} if about else {}
    triples: dict[Triple, None] = {}
    for sentence, found in read:
        begin = 0
        if (label := _SPEAKER.match(sentence)) and label[1] in speakers:
            subject, begin = uncamel(label[1]), label.end()
            entities.setdefault(norm(subject), subject)
        normed = [(norm(name.text), name) for name in found if name.start >= begin]
        named = [(form, name) for form, name in normed if form in sure or (form and not name.doubtful)]
        triples.update(dict.fromkeys(_facts(sentence, begin, named, subject)))
        for form, name in named:
            entities.setdefault(form, name.text)
        for date in _DATE.findall(sentence):
            entities.setdefault(norm(date), date)
    return Extraction(entities=tuple(entities.values()), triples=tuple(triples))


def _speakers(title: str, read: Sequence[str]) -> set[str]:
    """Labels of a dialogue. Under a title a label must return: "Note: ..." opens a line as well."""
    labels = Counter(label[1] for sentence in read if (label := _SPEAKER.match(sentence)))
    return {label for label, times in labels.items() if times > 1 or not title}


def _subject(title: str, read: Sequence[tuple[str, Sequence[Name]]]) -> str:
    """What the passage is about: its title without a bracket at the end, else its first name, else nothing."""
    bare = clean(_BRACKET.sub("", title)) or clean(title)
    if norm(bare):
        return bare
    every = [name for _, found in read for name in found if norm(name.text)]
    return next((name.text for name in every if not name.doubtful), every[0].text if every else "")


def _facts(sentence: str, begin: int, named: Sequence[tuple[str, Name]], subject: str) -> Iterator[Triple]:
    """What `sentence` says from character `begin` on; `named` holds its names behind their normal forms."""
    if not subject:
        return
    about = norm(subject)
    alone = True
    last_form, last = about, ""
    for form, name in named:
        words = _WORD.findall(sentence, begin, name.start)
        relation = " ".join(words[-RELATION_WORDS:])
        if form != about:
            alone = False
            yield Triple(subject, relation or "mentions", name.text)
            if last_form not in (about, form) and len(words) <= LONGEST_GAP:
                yield Triple(last, relation or "and", name.text)
        last_form, last, begin = form, name.text, name.end
    if alone and len(words := _WORD.findall(sentence, begin)) > 1:
        yield Triple(subject, " ".join(words[:STATEMENT_WORDS]), subject)
