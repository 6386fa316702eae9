"""An extractor without a model: names as their capitals give them, linked by the words that stand between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from index.text import Name, clean, names, norm, sentences, terms, uncamel
from index.types import Extraction, Triple

RELATION_WORDS = 8
"""A relation keeps the last words before its tail."""

STATEMENT_WORDS = 12
"""A sentence that names nothing new is kept as a fact of its first words, from its subject to itself."""

_LISTING = frozenset(("and", "or", "nor"))
"""A single such word, or none, between two names continues a list: what was said of the first holds for the second."""

_MONTH = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_DATE = re.compile(
    r"(?=[\dADFJMNOS])"  # a digit or a month's first letter: most places fail at once
    rf"\b(?:\d{{1,2}} {_MONTH}(?:,? \d{{4}})?|{_MONTH} \d{{1,2}}(?:,? \d{{4}})?(?!\d)|{_MONTH},? \d{{4}}"
    r"|\d{4}-\d{2}-\d{2}|(?:1\d|20)\d\ds?)\b"
)
_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
_SPEAKER = re.compile(r"([^\W_][\w.'’-]*(?: [\w.'’-]+){0,3}):\s")
_LETTERS = r"[^\s.,;:!?()\[\]{}\"“”«»…]*+"
_WORD = re.compile(rf"[^\W_]{_LETTERS}(?:[.,](?=\w){_LETTERS})*+")

_Named = Sequence[tuple[str, Name]]
"""Names of a sentence behind their normal forms, in reading order."""


class RulesExtractor:
    """Reads names, dates and facts off the letters of a passage.

    Every sentence has a subject: whoever speaks it ("Name: ..."), else the passage's title, else the passage's first
    name. Each further name is a fact about the subject, once a passage; a sentence without a new name is a statement, a
    fact from its subject to itself. So a passage has few edges, and a walk entering by a name is soon at the passage;
    facts between neighbouring names as well cost recall. Dates are entities and words of relations, but no ends of
    facts: a year links passages that have nothing else in common.
    """

    fingerprint = "rules-1"

    def extract(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        """Never raises; a passage without title and names has no facts."""
        return [_read(title, text) for title, text in passages]


def _read(title: str, text: str) -> Extraction:
    read = [(sentence, _normed(sentence)) for sentence in sentences(text)]
    sure = {form for _, found in read for form, name in found if not name.doubtful}
    speakers = _speakers(title, [sentence for sentence, _ in read])
    subject = _subject(title, read)
    about = norm(subject)
    sure.update(about.split())  # a word of the title that opens a sentence is a name
    entities = {about: subject} if about else {}
    facts: dict[tuple[str, ...], Triple] = {}
    for sentence, found in read:
        begin = 0
        if speakers and (label := _SPEAKER.match(sentence)) and label[1] in speakers:
            subject, begin = uncamel(label[1]), label.end()
            about = norm(subject)
            entities.setdefault(about, subject)
        named = [(form, name) for form, name in found if name.start >= begin and form in sure]
        if about:
            _state(facts, sentence, begin, named, subject, about)
        for form, name in named:
            entities.setdefault(form, name.text)
        for date in _DATE.findall(sentence):
            entities.setdefault(norm(date), date)
    return Extraction(entities=tuple(entities.values()), triples=tuple(facts.values()))


def _normed(sentence: str) -> list[tuple[str, Name]]:
    """The names of a sentence that have a normal form."""
    return [(form, name) for name in names(sentence) if (form := norm(name.text))]


def _speakers(title: str, read: Sequence[str]) -> set[str]:
    """Labels of a dialogue. Under a title a label must return: "Note: ..." opens a line as well."""
    labels = Counter(label[1] for sentence in read if ":" in sentence and (label := _SPEAKER.match(sentence)))
    return {label for label, times in labels.items() if times > 1 or not title}


def _subject(title: str, read: Sequence[tuple[str, _Named]]) -> str:
    """What the passage is about: its title without a bracket at the end, else its first name, else nothing."""
    bare = clean(_BRACKET.sub("", title)) or clean(title)
    if norm(bare):
        return bare
    every = [name for _, found in read for _, name in found]
    return next((name.text for name in every if not name.doubtful), every[0].text if every else "")


def _state(
    facts: dict[tuple[str, ...], Triple], sentence: str, begin: int, named: _Named, subject: str, about: str
) -> None:
    """Add to `facts`, which are keyed by the pair they link, what `sentence` says from character `begin` on.

    `about` is the normal form of `subject`.
    """
    start, known = begin, len(facts)
    relation = "mentions"
    for form, name in named:
        words = _WORD.findall(sentence, begin, name.start)
        begin = name.end + (2 if sentence.startswith(("'s", "’s"), name.end) else 0)
        if len(words) > 1 or (words and words[0] not in _LISTING):
            relation = " ".join(words[-RELATION_WORDS:])
        if form != about:
            facts.setdefault((about, form), Triple(subject, relation, name.text))
    if len(facts) == known:
        words = _WORD.findall(sentence, start)
        statement = " ".join(words[:STATEMENT_WORDS])
        # By terms, since a script without blanks says much in one word. A heading that repeats the title says nothing.
        if norm(statement) != about and (len(words) > 1 or len(terms(statement)) > 1):
            facts.setdefault((about, about, statement), Triple(subject, statement, subject))
