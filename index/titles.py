"""Titles as names: which live, and which sentences their words stand in; kept exact while titles come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from . import keys
from .delta import Delta
from .graph.incidence import Incidence
from .graph.segment import Relation, Segment
from .keys import halves
from .naming import Sentence, name_key, sentences_of, telling
from .types import Key, Passage

Read = Callable[[Sequence[Key]], Mapping[Key, Passage]]
"""Rows of passages that stand before a batch, by key."""


class Titles:
    """The living titles of a namespace by normal form, found by the words of a sentence.

    A title lives while a passage is about it. It is mentioned wherever its words stand in a row, in any case; one
    whose words are in every text (`The Who`) is not looked for.
    """

    def __init__(self, votes: Mapping[str, int]) -> None:
        """`votes`: normal form -> number of passages about it."""
        self._votes: dict[str, int] = {}
        self._living: set[str] = set()
        """Those that are looked for in texts."""
        self._lengths: dict[str, dict[int, int]] = {}
        """First word -> number of words -> living titles of that length that begin so."""
        self.change(votes)

    @classmethod
    def of(cls, segments: Iterable[Segment]) -> Titles:
        """The titles that live in the sum of `segments`."""
        votes: dict[str, int] = {}
        for segment in segments:
            _count(votes, segment[Relation.TITLES])
        return cls(votes)

    def change(self, votes: Mapping[str, int]) -> tuple[list[str], list[str]]:
        """Add votes of either sign; returns the born and the dead among the titles that are looked for in texts."""
        born: list[str] = []
        died: list[str] = []
        for form, change in votes.items():
            before = self._votes.get(form, 0)
            after = before + change
            if after:
                self._votes[form] = after
            else:
                self._votes.pop(form, None)
            if (before > 0) != (after > 0) and telling(form):
                (born if after else died).append(form)
                self._index(form, +1 if after else -1)
                (self._living.add if after else self._living.discard)(form)
        return born, died

    def mentioned(self, words: Sequence[str]) -> set[str]:
        """The living titles whose words stand in a row among `words`."""
        found = set()
        for start, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                form = " ".join(words[start : start + length])
                if start + length <= len(words) and form in self._living:
                    found.add(form)
        return found

    def _index(self, form: str, change: int) -> None:
        first, *others = form.split()
        lengths = self._lengths.setdefault(first, {})
        length = 1 + len(others)
        lengths[length] = lengths.get(length, 0) + change
        if not lengths[length]:
            del lengths[length]
        if not lengths:
            del self._lengths[first]


def join(
    delta: Delta,
    titles: Titles,
    gone: Mapping[Key, Sequence[Sentence]],
    come: Mapping[Key, Sequence[Sentence]],
    segments: Sequence[Segment],
    read: Read,
) -> None:
    """Add to `delta`, which has the votes for titles already, the mentions that come and take those that go.

    `gone` and `come` are the sentences of the passages that do; `segments` sum to the state before them.
    """
    former = [(sentence.key, titles.mentioned(sentence.words)) for said in gone.values() for sentence in said]
    born, died = titles.change(votes(delta.so_far(Relation.TITLES)))
    for sentence, forms in former:
        for form in forms.difference(died):
            delta.add(Relation.TITLED, name_key(form), sentence, -1)
    dead = [name_key(form) for form in died]
    for entries in (segment[Relation.TITLED].select(dead) for segment in segments):
        for name, sentence, weight in zip(entries.rows(), entries.cols(), entries.weight.tolist(), strict=True):
            delta.add(Relation.TITLED, name, sentence, -weight)
    for said in come.values():
        _mention(delta, titles, said)

    # A passage that goes and comes again has been looked at.
    found = {form: set(passages).difference(gone) for form, passages in holding(born, segments).items()}
    rows = read(sorted(set().union(*found.values())))
    for form, passages in found.items():
        for passage in passages:
            _mention(delta, titles, sentences_of(rows[passage]), {form})


def _mention(delta: Delta, titles: Titles, said: Iterable[Sentence], only: set[str] | None = None) -> None:
    for sentence in said:
        forms = titles.mentioned(sentence.words)
        for form in forms if only is None else forms & only:
            delta.add(Relation.TITLED, name_key(form), sentence.key, +1)


def votes(incidence: Incidence) -> dict[str, int]:
    """Normal form -> votes of the relation TITLES."""
    return _count({}, incidence)


def holding(titles: Sequence[str], segments: Sequence[Segment]) -> dict[str, list[Key]]:
    """Per title the passages of the sum of `segments` that have all of its terms: the only ones that may mention it.

    Costs the postings of each title's rarest term; commoner ones are only read while they narrow what is left.
    """
    telling_terms = {title: [keys.term_key(term) for term in telling(title)] for title in titles}
    every = list(dict.fromkeys(term for terms in telling_terms.values() for term in terms))
    sizes = dict(zip(every, _row_lengths(every, segments), strict=True))
    postings: dict[Key, set[Key]] = {}
    found = {}
    for title, terms in telling_terms.items():
        left: set[Key] | None = None
        for term in sorted(terms, key=lambda term: (sizes[term], term)):
            if left is not None and 8 * len(left) < sizes[term]:
                break
            if term not in postings:
                postings[term] = _row(term, segments) if sizes[term] else set()
            left = postings[term] if left is None else left & postings[term]
        if left:
            found[title] = sorted(left)
    return found


def _row(term: Key, segments: Sequence[Segment]) -> set[Key]:
    """The passages that have a term."""
    counts: dict[Key, int] = {}
    for segment in segments:
        entries = segment[Relation.TERMS].select([term])
        for passage, weight in zip(entries.cols(), entries.weight.tolist(), strict=True):
            counts[passage] = counts.get(passage, 0) + weight
    return {passage for passage, count in counts.items() if count}


def _row_lengths(rows: Sequence[Key], segments: Sequence[Segment]) -> list[int]:
    """Entries of each row over all segments: at least as many as its sum has."""
    high, _ = halves(rows)
    total = np.zeros(len(rows), np.int64)
    for segment in segments:
        column = segment[Relation.TERMS].row_high
        total += np.searchsorted(column, high, side="right") - np.searchsorted(column, high, side="left")
    found: list[int] = total.tolist()
    return found


def _count(counts: dict[str, int], incidence: Incidence) -> dict[str, int]:
    for form, weight in zip(incidence.text.to_pylist(), incidence.weight.tolist(), strict=True):
        counts[form] = counts.get(form, 0) + weight
    return counts
