"""Random passages, and what an index of them must hold, worked out the slow way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from index import keys
from index.graph.incidence import Incidence
from index.graph.segment import Relation
from index.text import clean, norm, terms
from index.types import Extraction, Key, Passage, Triple

Entries = Counter[tuple[Key, Key]]

NAMES = ("Ada Moor", "ada moor", "ADA  MOOR", "Pier 9", "Pier 12", "pier 9.", "Bo", "Osprey", "Ospreys", "", " - ")
RELATIONS = ("met", "Met", "built", "")
TEXTS = ("Ada met Bo at Pier 9.", "The Osprey sank; the Osprey was raised.", "Nobody was there.", "")

names = st.sampled_from(NAMES)
triples = st.builds(Triple, names, st.sampled_from(RELATIONS), names)
extractions = st.builds(
    Extraction, st.sampled_from(["", "a memory"]), st.just(()), st.lists(triples, max_size=5).map(tuple)
)


def passage(id: str, text: str, title: str, metadata: str, extraction: Extraction) -> Passage:
    return Passage(keys.passage_key("naive", id, text, 0), id, title, text, metadata, None, extraction, about=title)


passages = st.builds(
    passage,
    st.sampled_from(["d1", "d2", "d3", "d4"]),
    st.sampled_from(TEXTS),
    st.sampled_from(["", "The Osprey"]),
    st.sampled_from(["{}", '{"shelf":1}']),
    extractions,
)


def entries(incidence: Incidence) -> Entries:
    """The set as a Counter, after checking that it is one: sorted, no pair twice, no zero."""
    pairs = list(zip(incidence.rows(), incidence.cols(), strict=True))
    assert pairs == sorted(set(pairs))
    assert 0 not in incidence.weight.tolist()
    assert len(incidence.text) == len(pairs)
    return Counter(dict(zip(pairs, incidence.weight.tolist(), strict=True)))


def facts_in(passage: Passage) -> dict[tuple[str, str, str], set[tuple[str, str, str]]]:
    """Normal forms of the passage's facts -> the ways it writes them."""
    facts: dict[tuple[str, str, str], set[tuple[str, str, str]]] = {}
    for triple in passage.extraction.triples:
        written = clean(triple.head), clean(triple.relation), clean(triple.tail)
        norms = norm(triple.head), norm(triple.relation), norm(triple.tail)
        if norms[0] and norms[2]:
            facts.setdefault(norms, set()).add(written)
    return facts


def spellings(passages: Iterable[Passage]) -> dict[Key, str]:
    """Every living entity and fact with the spelling that most passages use, the smallest of several."""
    votes: dict[Key, Counter[str]] = {}
    for passage in passages:
        heard: set[tuple[Key, str]] = set()
        for norms, ways in facts_in(passage).items():
            for head, relation, tail in ways:
                heard |= {(keys.entity_key(norms[0]), head), (keys.entity_key(norms[2]), tail)}
                heard.add((keys.fact_key(*norms), f"{head} {relation} {tail}"))
        for thing, surface in heard:
            votes.setdefault(thing, Counter())[surface] += 1
    return {thing: min(sorted(counted), key=lambda s: -counted[s]) for thing, counted in votes.items()}


def relations(passages: Iterable[Passage]) -> Mapping[Relation, Entries]:
    """The relations that a passage contributes to directly, except for the votes."""
    found = {relation: Entries() for relation in (Relation.MENTIONS, Relation.SUPPORTS, Relation.LINKS, Relation.TERMS)}
    for passage in passages:
        facts = facts_in(passage)
        for name in {norms[end] for norms in facts for end in (0, 2)}:
            found[Relation.MENTIONS][keys.entity_key(name), passage.key] += 1
        for norms in facts:
            found[Relation.SUPPORTS][keys.fact_key(*norms), passage.key] += 1
            low, high = sorted((keys.entity_key(norms[0]), keys.entity_key(norms[2])))
            if low != high:
                found[Relation.LINKS][low, high] += 1
        text = f"{passage.title}\n{passage.text}" if passage.title else passage.text
        for term, frequency in terms(text).items():
            found[Relation.TERMS][keys.term_key(term), passage.key] += frequency
    return found


def moved(passage: Passage, document: str) -> Passage:
    """The same passage as the only one of another document."""
    key = keys.passage_key("naive", document, passage.text, 0)
    return replace(passage, key=key, document=document)
