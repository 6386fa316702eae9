"""The algebra of change: what a passage contributes to the index, asserted with +1 and retracted with -1."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from . import keys
from .graph.incidence import Incidence
from .graph.segment import Relation, Segment
from .text import clean, norm, terms
from .types import Entity, Extraction, Fact, Key, Passage, Triple

_term_key = lru_cache(maxsize=1 << 17)(keys.term_key)
_entity_key = lru_cache(maxsize=1 << 15)(keys.entity_key)


class Delta:
    """A sum of contributions that is still being collected.

    Adding is commutative and `retract(p)` undoes `assert_(p)` exactly, so the index is the sum over the passages
    that are left, whatever came before. `entities` and `facts` describe every thing the delta touches, under its
    key.
    """

    def __init__(self) -> None:
        self.entities: dict[Key, Entity] = {}
        self.facts: dict[Key, Fact] = {}
        self._entries: dict[Relation, tuple[list[Key], list[Key], list[int], list[str]]] = {
            relation: ([], [], [], []) for relation in Relation
        }

    def assert_(self, passage: Passage) -> None:
        self._contribute(passage, +1)

    def retract(self, passage: Passage) -> None:
        self._contribute(passage, -1)

    def add(self, relation: Relation, row: Key, col: Key, weight: int, text: str = "") -> None:
        rows, cols, weights, texts = self._entries[relation]
        rows.append(row)
        cols.append(col)
        weights.append(weight)
        if relation is Relation.SPELLINGS:
            texts.append(text)

    def spellings(self) -> Incidence:
        """The votes collected so far, consolidated."""
        return Incidence.of(*self._entries[Relation.SPELLINGS])

    def segment(self) -> Segment:
        """Everything collected so far, consolidated."""
        return Segment(
            {
                relation: Incidence.of(rows, cols, weights, texts or None)
                for relation, (rows, cols, weights, texts) in self._entries.items()
                if rows
            }
        )

    def _contribute(self, passage: Passage, sign: int) -> None:
        surfaces: set[tuple[Key, str]] = set()
        facts: set[Key] = set()
        entities: set[Key] = set()
        for fact, heard in facts_of(passage.extraction):
            surfaces.update(heard)
            if fact.key in facts:
                continue
            facts.add(fact.key)
            entities.update((fact.head, fact.tail))
            self.facts[fact.key] = fact
            self.add(Relation.SUPPORTS, fact.key, passage.key, sign)
            if fact.head != fact.tail:
                low, high = sorted((fact.head, fact.tail))
                self.add(Relation.LINKS, low, high, sign)
            self.entities[fact.head] = Entity(fact.head, fact.norms[0], "")
            self.entities[fact.tail] = Entity(fact.tail, fact.norms[2], "")
        for entity in entities:
            self.add(Relation.MENTIONS, entity, passage.key, sign)
        for thing, surface in surfaces:
            self.add(Relation.SPELLINGS, thing, keys.key("surface", surface), sign, surface)
        for term, frequency in terms(indexed_text(passage)).items():
            self.add(Relation.TERMS, _term_key(term), passage.key, sign * frequency)


def indexed_text(passage: Passage) -> str:
    """What is embedded and searched for words: title, line break, text, or the text alone (CogitoRAG, equation 9)."""
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


def facts_of(extraction: Extraction) -> Iterable[tuple[Fact, list[tuple[Key, str]]]]:
    """Facts of one passage with the (thing, spelling) pairs heard in each; a triple without a name at one end is none.

    `Fact.surface` is this passage's spelling; which spelling the index shows is decided by all votes (methods:
    CogitoRAG, step 6).
    """
    for triple in extraction.triples:
        head, relation, tail = Triple(*map(clean, triple))
        norms = norm(head), norm(relation), norm(tail)
        if norms[0] and norms[2]:
            fact = Fact(
                keys.fact_key(*norms), _entity_key(norms[0]), _entity_key(norms[2]), norms, f"{head} {relation} {tail}"
            )
            yield fact, [(fact.key, fact.surface), (fact.head, head), (fact.tail, tail)]
