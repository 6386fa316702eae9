"""What a snapshot knows of sentences: their vectors, the names and titles in them, and what follows what in a chat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from . import keys, records, turns
from .cosine import Float32s, Float64s
from .graph.chains import gathered
from .graph.incidence import Incidence
from .graph.rows import SparseRows
from .graph.segment import Relation, Segment
from .keys import halves
from .naming import SURE, name_key
from .numbers import Grown, Numbers, numbered
from .vectors import VectorTable

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class SpokenKinds:
    """The numberings of sentences, names, words of titles and sessions that all snapshots of one reader share."""

    sentences: Numbers = field(default_factory=Numbers)
    names: Numbers = field(default_factory=Numbers)
    words: Numbers = field(default_factory=Numbers)
    sessions: Numbers = field(default_factory=Numbers)
    passage_of: Grown = field(default_factory=lambda: Grown(1, np.int64))
    """Passage number of each sentence number."""
    titles: dict[int, str] = field(default_factory=dict)
    """Normal form of every name that is or was a title."""


@dataclass(frozen=True)
class Spoken:
    """Part of a snapshot, as immutable as that; numbers are those of its reader (see numbers.py)."""

    kinds: SpokenKinds
    vectors: VectorTable
    """Vectors of living sentences by sentence number."""
    said: SparseRows
    """passage x sentence: its place from 1."""
    named: SparseRows
    """sentence x name: naming.SURE for a certain mention, less for a doubtful one."""
    having: SparseRows
    """name x passage: the same, summed over the passage's sentences, and SURE where the passage is about the name."""
    titles: SparseRows
    """name x word: votes for the title, in the row of every word of a living title."""
    title_words: SparseRows
    """word x name: the same, the other way."""
    about: Int64s
    """The name that each passage number is about, -1 for none."""
    sessions: Mapping[int, tuple[tuple[str, int], ...]]
    """Per session its passages at their places, in order."""
    neighbours: Int64s
    """The passages before and after each passage number in its session (passages, 2), -1 for none."""

    def sentences(self, passage: int) -> tuple[Int64s, Int64s]:
        """Numbers and places (n,) of a passage's sentences, in order of place."""
        if passage >= self.said.n_rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        numbers, places = self.said.row(passage)
        order = np.argsort(places)
        return numbers[order].astype(np.int64), places[order] - 1

    def names(self, sentence: int) -> list[int]:
        """The names of a sentence that are names: certain here or in any other sentence."""
        if sentence >= self.named.n_rows:
            return []
        found, _ = self.named.row(sentence)
        return [name for name in found.tolist() if self.is_name(name)]

    def is_name(self, name: int) -> bool:
        return name < self.having.n_rows and self.having.total(name) >= SURE

    def passages_with(self, name: int) -> Int64s:
        """Passages (df,) that have a name: they mention it or are about it."""
        if not self.is_name(name):
            return np.empty(0, np.int64)
        passages, _ = self.having.row(name)
        return cast(Int64s, passages.astype(np.int64))

    def passages_about(self, title: int) -> Int64s:
        """Passages (n,) that are about a title."""
        having = self.passages_with(title)
        about: Int64s = having[self.about[having] == title]
        return about

    def title(self, form: str) -> int | None:
        """The number of a living title with this normal form."""
        number = self.kinds.names.find(name_key(form))
        return number if number is not None and self.is_title(number) else None

    def is_title(self, name: int) -> bool:
        return name < self.titles.n_rows and self.titles.total(name) > 0

    def word(self, word: str) -> int | None:
        """The number of a word that some living title has."""
        number = self.kinds.words.find(_word_key(word))
        known = number is not None and number < self.title_words.n_rows and self.title_words.total(number) > 0
        return number if known else None

    @cached_property
    def n_titles(self) -> int:
        return int(np.count_nonzero(self.titles.totals))

    def best(self, passages: Int64s, question: Float64s) -> Float64s:
        """The largest dot product of each passage's sentences with a vector (d,); 0 where it has none."""
        ptr, sentences, _ = gathered(self.said.chains, passages)
        largest = np.zeros(len(passages))
        filled = np.flatnonzero(np.diff(ptr))
        if len(filled):
            scores = self.vectors.scores(sentences, question)
            largest[filled] = np.maximum.reduceat(scores, ptr[filled])
        return largest


def nothing_said(dimensions: int) -> Spoken:
    """Before the first batch."""
    none = SparseRows.from_entries([], [], [], 0)
    vectors = VectorTable.empty(dimensions, np.float16)
    about, neighbours = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    return Spoken(SpokenKinds(), vectors, none, none, none, none, none, about, {}, neighbours)


def follow(old: Spoken, delta: Segment, passages: Numbers, rows: Any) -> Spoken:
    """`old` plus a delta; `rows` are those that came to the table `sentences` (key, vector)."""
    kinds = old.kinds
    of_passages, said, places = numbered(delta[Relation.SENTENCES], passages, kinds.sentences)
    kinds.passage_of.fill(said, of_passages[:, None])
    passage_of = cast(Int64s, kinds.passage_of.view(len(kinds.sentences))[:, 0])
    names, in_sentences, weights = numbered(delta[Relation.NAMES], kinds.names, kinds.sentences)
    titled, in_titled, mentions = numbered(delta[Relation.TITLED], kinds.names, kinds.sentences)
    passage, about, turns_of = numbered(delta[Relation.ABOUT], passages, kinds.names)

    names = np.concatenate([names, titled])
    in_sentences = np.concatenate([in_sentences, in_titled])
    weights = np.concatenate([weights, SURE * mentions])
    title, word, votes = _title_words(delta[Relation.TITLES], kinds)
    n_names = len(kinds.names)
    return replace(
        old,
        vectors=_moved(old.vectors, kinds.sentences, said[places < 0], rows),
        said=old.said.grown(of_passages, said, places, len(passages)),
        named=old.named.grown(in_sentences, names, weights, len(kinds.sentences)),
        having=old.having.grown(
            np.concatenate([names, about]),
            np.concatenate([passage_of[in_sentences], passage]),
            np.concatenate([weights, SURE * turns_of]),
            n_names,
        ),
        titles=old.titles.grown(title, word, votes, n_names),
        title_words=old.title_words.grown(word, title, votes, len(kinds.words)),
        about=_about(old.about, passage, about, turns_of, len(passages)),
        **_sessions(old, delta[Relation.TURNS], passages),
    )


def _word_key(word: str) -> bytes:
    return keys.key("word", word)


def _title_words(entries: Incidence, kinds: SpokenKinds) -> tuple[Int64s, Int64s, Int64s]:
    """Entries (title, word, votes) for every word of every title that gets or loses votes."""
    forms = [dict.fromkeys(form.split()) for form in entries.text.to_pylist()]
    counts = np.array([len(words) for words in forms], np.int64)
    names = kinds.names.assign(entries.row_high, entries.row_low)
    kinds.titles.update(zip(names.tolist(), entries.text.to_pylist(), strict=True))
    titles = np.repeat(names, counts)
    words = kinds.words.assign(*halves([_word_key(word) for words in forms for word in words]))
    return titles, words, np.repeat(entries.weight, counts)


def _moved(vectors: VectorTable, numbers: Numbers, gone: Int64s, rows: Any) -> VectorTable:
    dead = vectors.rows_of(gone)
    come = numbers.assign(*halves(rows["key"].to_pylist()))
    return vectors.extend(come, cast(Float32s, records.matrix(rows["vector"])), dead[dead >= 0])


def _about(old: Int64s, passages: Int64s, names: Int64s, weights: Int64s, n: int) -> Int64s:
    """A passage that changes what it is about leaves the one and takes the other."""
    about = np.full(n, -1, np.int64)
    about[: len(old)] = old
    about[passages[weights < 0]] = -1
    about[passages[weights > 0]] = names[weights > 0]
    return about


def _sessions(old: Spoken, entries: Incidence, passages: Numbers) -> dict[str, Any]:
    """Sessions and neighbours after a delta of turns."""
    neighbours = np.full((len(passages), 2), -1, np.int64)
    neighbours[: len(old.neighbours)] = old.neighbours
    if not len(entries):
        return {"neighbours": neighbours}
    changed: dict[int, set[tuple[str, int]]] = {}
    sessions = old.kinds.sessions.assign(entries.row_high, entries.row_low).tolist()
    read = turns.read(entries.text.to_pylist())
    numbers = passages.assign(*halves([passage for _, passage in read])).tolist()
    members = [(place, number) for (place, _), number in zip(read, numbers, strict=True)]
    for session, member, weight in zip(sessions, members, entries.weight.tolist(), strict=True):
        held = changed.setdefault(session, set(old.sessions.get(session, ())))
        if weight < 0:
            held.discard(member)
            neighbours[member[1]] = -1
        else:
            held.add(member)
    ordered = {session: tuple(sorted(held)) for session, held in changed.items()}
    for turns_taken in ordered.values():
        line = np.array([-1, *(number for _, number in turns_taken), -1])
        neighbours[line[1:-1], 0], neighbours[line[1:-1], 1] = line[:-2], line[2:]
    kept = {session: held for session, held in {**old.sessions, **ordered}.items() if held}
    return {"sessions": kept, "neighbours": neighbours}
