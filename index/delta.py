"""The algebra of change: what a passage contributes to the index, asserted with +1 and retracted with -1."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial

from . import keys
from .graph.incidence import Incidence
from .graph.segment import Relation, Segment
from .naming import Sentence, name_key, sentences_of, title_form
from .text import clean, norm, terms
from .turns import turns
from .types import Document, Entity, Extraction, Fact, Key, Passage

_term_key = lru_cache(maxsize=1 << 14)(keys.term_key)
_surface_key = lru_cache(maxsize=1 << 12)(partial(keys.key, "surface"))


class Delta:
    """A sum of contributions that is still being collected.

    Adding is commutative and `retract(p)` undoes `assert_(p)` exactly, so the index is the sum over the passages
    that are left, whatever came before. `entities`, `facts` and `sentences` describe every thing the delta touches,
    under its key.
    """

    def __init__(self) -> None:
        self.entities: dict[Key, Entity] = {}
        self.facts: dict[Key, Fact] = {}
        self.sentences: dict[Key, Sentence] = {}
        self._entries: dict[Relation, tuple[list[Key], list[Key], list[int], list[str]]] = {
            relation: ([], [], [], []) for relation in Relation
        }

    def assert_(self, passage: Passage) -> None:
        self._contribute(passage, +1)

    def retract(self, passage: Passage) -> None:
        self._contribute(passage, -1)

    def add(self, relation: Relation, row: Key, col: Key, weight: int) -> None:
        """One entry of a relation that carries no texts."""
        rows, cols, weights, _ = self._entries[relation]
        rows.append(row)
        cols.append(col)
        weights.append(weight)

    def speak(self, passage: Passage, sign: int) -> list[Sentence]:
        """Add (or with -1 take away) the sentences of a passage, their names, and what it is about."""
        found = sentences_of(passage)
        for sentence in found:
            self.sentences[sentence.key] = sentence
            weights = [sign * weight for weight in sentence.names.values()]
            self._extend(Relation.NAMES, map(name_key, sentence.names), [sentence.key] * len(weights), weights)
        here, keys = [passage.key] * len(found), [sentence.key for sentence in found]
        self._extend(Relation.SENTENCES, here, keys, [sign * (sentence.place + 1) for sentence in found])
        if form := title_form(passage.about):
            self.add(Relation.ABOUT, passage.key, name := name_key(form), sign)
            self._extend(Relation.TITLES, [name], [name], [sign], [form])
        return found

    def take_turns(self, document: Document, sign: int) -> None:
        """Add (or with -1 take away) the turns of a document in its session."""
        for turn in turns(document):
            self._extend(Relation.TURNS, [turn.session], [turn.key], [sign], [turn.text])

    def so_far(self, relation: Relation) -> Incidence:
        """The entries of one relation collected so far, consolidated."""
        rows, cols, weights, texts = self._entries[relation]
        return Incidence.of(rows, cols, weights, texts or None)

    def segment(self) -> Segment:
        """Everything collected so far, consolidated."""
        return Segment({relation: self.so_far(relation) for relation, (rows, *_) in self._entries.items() if rows})

    def _contribute(self, passage: Passage, sign: int) -> None:
        facts: dict[Key, Fact] = {}
        entities: dict[Key, str] = {}
        votes: set[tuple[Key, str]] = set()
        for fact, heard in facts_of(passage.extraction):
            facts[fact.key] = fact
            entities[fact.head], _, entities[fact.tail] = fact.norms
            votes.update(heard)
        self.facts.update(facts)
        self.entities.update((name, Entity(name, form, "")) for name, form in entities.items())
        things, surfaces = [thing for thing, _ in votes], [surface for _, surface in votes]
        links = [sorted((fact.head, fact.tail)) for fact in facts.values() if fact.head != fact.tail]
        words, here = terms(indexed_text(passage)), passage.key
        self._extend(Relation.MENTIONS, entities, [here] * len(entities), [sign] * len(entities))
        self._extend(Relation.SUPPORTS, facts, [here] * len(facts), [sign] * len(facts))
        self._extend(Relation.LINKS, [low for low, _ in links], [high for _, high in links], [sign] * len(links))
        self._extend(Relation.SPELLINGS, things, map(_surface_key, surfaces), [sign] * len(things), surfaces)
        self._extend(Relation.TERMS, map(_term_key, words), [here] * len(words), [sign * n for n in words.values()])

    def _extend(
        self,
        relation: Relation,
        rows: Iterable[Key],
        cols: Iterable[Key],
        weights: Iterable[int],
        texts: Iterable[str] = (),
    ) -> None:
        entries = self._entries[relation]
        entries[0].extend(rows)
        entries[1].extend(cols)
        entries[2].extend(weights)
        entries[3].extend(texts)


def indexed_text(passage: Passage) -> str:
    """What is embedded and searched for words: title, line break, text, or the text alone (CogitoRAG, equation 9)."""
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


def facts_of(extraction: Extraction) -> Iterable[tuple[Fact, list[tuple[Key, str]]]]:
    """Facts of one passage with the (thing, spelling) pairs heard in each; a triple without a name at one end is none.

    `Fact.surface` is this passage's spelling; which spelling the index shows is decided by all votes (methods:
    CogitoRAG, step 6).
    """
    for triple in extraction.triples:
        head, head_norm, head_key = _named(triple.head)
        tail, tail_norm, tail_key = _named(triple.tail)
        if head_norm and tail_norm:
            relation = clean(triple.relation)
            norms = head_norm, norm(relation), tail_norm
            fact = Fact(keys.fact_key(*norms), head_key, tail_key, norms, f"{head} {relation} {tail}")
            yield fact, [(fact.key, fact.surface), (head_key, head), (tail_key, tail)]


@lru_cache(maxsize=1 << 12)
def _named(written: str) -> tuple[str, str, Key]:
    """Clean spelling, normal form and key of an entity."""
    name = clean(written)
    form = norm(name)
    return name, form, keys.entity_key(form)
