"""Who a question names: titles that stand in it, whole or in part, and what is left of it when one of them is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from index.naming import name_form, name_key, words
from index.spoken import Spoken
from index.text import CONNECTORS, MOST_WORDS, STOP_WORDS, names, terms

LONGEST_TITLE = 16
"""Words; a longer title is not looked for."""
MOST_TITLES = 60
"""Titles that one run of capitals is compared with."""
LEAST_OVERLAP = 0.3
"""Overlap below which a run of capitals does not mean a title."""
CONNECTOR_WEIGHT = 0.1

Specificity = Callable[[int], float]
"""Of a name: 1 for one that a single passage has, 0 for one that all have."""


class Asked(NamedTuple):
    """The names of a question, by number."""

    titles: dict[int, float]
    """How surely it means each living title, above 0 up to 1."""
    names: frozenset[int]
    """All that stands in it."""


class _Word(NamedTuple):
    form: str
    capital: bool
    """Its capital means something: it is no function word at the beginning."""


def names_asked(spoken: Spoken, text: str, specificity: Specificity) -> Asked:
    """Read a question (methods/fused.md, section 3, step 1)."""
    said = _words(text)
    whole = {title: sure * specificity(title) for title, sure in _whole(spoken, said).items()}
    titles = {title: score for title, score in whole.items() if score > 0}
    for run in names(text):
        for title, score in _partly(spoken, name_form(run.text).split()):
            titles[title] = max(titles.get(title, 0.0), score)
    return Asked(titles, frozenset(_named(spoken, said)))


def rest_of(question: str, title: str) -> str | None:
    """The question without the words that name a passage by its title; None where none does or too little is left.

    A word goes where it has a term of the title; connectors stay.
    """
    naming = terms(title).keys()
    tokens = question.split()
    kept = [token for token in tokens if token.lower() in CONNECTORS or naming.isdisjoint(terms(token))]
    return " ".join(kept) if 2 <= len(kept) < len(tokens) else None


def _words(text: str) -> list[_Word]:
    found: list[_Word] = []
    for token in text.split():
        letters = next((letter for letter in token if letter.isalnum()), "")
        for form in words(token):
            opening = not found and form in STOP_WORDS
            found.append(_Word(form, letters.isupper() and not opening))
    return found


def _named(spoken: Spoken, said: Sequence[_Word]) -> Iterator[int]:
    """Names whose words stand in the question, in any case, and inside longer ones as well."""
    for start in range(len(said)):
        for end in range(start + 1, min(len(said), start + MOST_WORDS) + 1):
            name = spoken.kinds.names.find(name_key(" ".join(word.form for word in said[start:end])))
            if name is not None:
                yield name


def _whole(spoken: Spoken, said: Sequence[_Word]) -> dict[int, float]:
    """Titles whose words stand in the question, inside no longer one: 1 where one of the words has a capital, else less
    for a title of several words, and least for a single one.
    """
    spans = []
    for start, word in enumerate(said):
        if spoken.word(word.form) is None:
            continue
        for end in range(start + 1, min(len(said), start + LONGEST_TITLE) + 1):
            title = spoken.title(" ".join(word.form for word in said[start:end]))
            if title is not None:
                spans.append((start, end, title))
    found: dict[int, float] = {}
    for start, end, title in spans:
        if not any(s <= start and end <= e and (s, e) != (start, end) for s, e, _ in spans):
            capital = any(word.capital for word in said[start:end])
            sure = 1.0 if capital else 0.5 if end - start > 1 else 0.25
            found[title] = max(found.get(title, 0.0), sure)
    return found


def _partly(spoken: Spoken, run: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Titles that share words with a run of capitals: the square of their overlap, each word as heavy as it is rare."""
    numbers = {word: spoken.word(word) for word in run}
    postings = {word: spoken.title_words.row(number)[0] for word, number in numbers.items() if number is not None}
    weights = {word: _weight(spoken, word, len(postings.get(word, ()))) for word in numbers}
    keys = spoken.kinds.names.keys
    candidates: dict[int, None] = {}
    for word in sorted(postings, key=lambda word: (len(postings[word]), word)):
        if word not in CONNECTORS:
            candidates |= dict.fromkeys(sorted(postings[word].tolist(), key=keys.__getitem__))
        if len(candidates) >= MOST_TITLES:
            break
    for title in list(candidates)[:MOST_TITLES]:
        others = set(spoken.kinds.titles[title].split())
        shared = sum(weights[word] for word in others & weights.keys())
        missed = (_weight(spoken, word, _titles_with(spoken, word)) for word in others - weights.keys())
        overlap = shared / (sum(weights.values()) + sum(missed))
        if overlap >= LEAST_OVERLAP:
            yield title, overlap**2


def _weight(spoken: Spoken, word: str, titles: int) -> float:
    return CONNECTOR_WEIGHT if word in CONNECTORS else math.log((spoken.n_titles + 1) / (titles + 0.5))


def _titles_with(spoken: Spoken, word: str) -> int:
    number = spoken.word(word)
    return 0 if number is None else len(spoken.title_words.row(number)[0])
