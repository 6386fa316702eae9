"""Tests of the plan of a batch: rows and entries against what a naive index of the passages that are left holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from index import records
from index.aliases import Aliases
from index.delta import indexed_text
from index.errors import ModelUnavailable
from index.graph.segment import Relation, total
from index.manifest import Counts
from index.plan import Changes, plan, texts_of
from index.types import Entity, Extraction, Key, Passage, Triple

from . import naive
from .naive import entries, moved, passages
from .planned import THRESHOLD, Batch, Planned
from .written import EMBEDDER, MADE

PLAIN = records.schemas(EMBEDDER.dimensions, entity_vectors=False)
"""Without alias edges."""
batches = st.dictionaries(st.sampled_from("abcd"), st.none() | passages, max_size=4)


def nothing(keys: Sequence[Key]) -> Mapping[Key, Passage]:
    raise AssertionError("no title came that an older passage could mention")


def all_aliases(entities: Sequence[Entity]) -> Mapping[tuple[Key, Key], int]:
    aliases = Aliases(EMBEDDER.dimensions, THRESHOLD, same_digits=True)
    aliases.bear(entities, EMBEDDER.embed([entity.name for entity in entities]))
    return aliases.edges(entity.key for entity in entities)


def says(*triples: tuple[str, str, str]) -> Passage:
    return naive.passage("", "text", "", "{}", Extraction(triples=tuple(Triple(*triple) for triple in triples)))


NEAR = says(("Osprey", "met", "Ospreys"))


@given(st.lists(batches, max_size=6))
@example([{"a": NEAR}, {"a": None}])  # both ends of an alias edge die at once
@example([{"a": NEAR, "b": says(("osprey", "met", "ospreys"))}, {"a": None}])  # both are respelled at once
@example([{"a": says(("Osprey", "met", "Bo"))}, {"b": says(("Ospreys", "met", "Bo"))}, {"a": None}])
def test_any_batches_give_the_index_of_what_is_left(history: list[Batch]) -> None:
    planned = Planned()
    for batch in history:
        planned.apply(batch)
    left = list(planned.passages.values())
    entities = [records.entity(row) for row in planned.rows["entities"].values()]
    facts = [records.fact(row) for row in planned.rows["facts"].values()]

    assert {row["id"] for row in planned.rows["documents"].values()} == planned.documents.keys()
    assert {key: records.passage(row) for key, row in planned.rows["passages"].items()} == {p.key: p for p in left}
    shown = {entity.key: entity.name for entity in entities} | {fact.key: fact.surface for fact in facts}
    assert shown == naive.spellings(left)
    assert planned.counts == Counts(documents=len(left), passages=len(left), entities=len(entities), facts=len(facts))

    state = total(planned.segments)
    for relation, expected in naive.relations(left).items():
        assert entries(state[relation]) == expected, relation.name
    assert entries(state[Relation.ALIASES]) == all_aliases(entities)
    things: dict[Relation, Sequence[Any]] = {
        Relation.PASSAGES: left, Relation.ENTITIES: entities, Relation.FACTS: facts
    }  # fmt: skip
    for relation, rows in things.items():
        assert entries(state[relation]) == {(row.key, records.content(row)): 1 for row in rows}, relation.name


def test_vectors_are_those_of_the_texts_shown() -> None:
    planned = Planned()
    titled = naive.passage("", "Who met?", "The Osprey", "{}", NEAR.extraction)
    planned.apply({"a": titled, "b": says(("Bo", "saw", "osprey"))})
    planned.apply({"c": says(("Bo", "saw", "osprey"))})
    texts = {
        "passages": {p.key: indexed_text(p) for p in planned.passages.values()},
        "entities": {key: row["name"] for key, row in planned.rows["entities"].items()},
        "facts": {key: row["surface"] for key, row in planned.rows["facts"].items()},
    }
    assert "osprey" in texts["entities"].values(), "respelled by a majority"
    for name, expected in texts.items():
        rows = planned.rows[name]  # type: ignore[index]
        assert rows.keys() == expected.keys()
        for key, text in expected.items():
            assert np.array_equal(np.array(rows[key]["vector"], np.float32), EMBEDDER.embed([text])[0]), text


def test_only_what_is_new_or_respelled_is_embedded_and_all_of_it_in_one_call() -> None:
    calls: list[list[str]] = []

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        calls.append(list(texts))
        return EMBEDDER.embed(texts)

    first, second = (moved(says(("Ada", "met", "Bo")), id) for id in "ab")
    made = plan(Changes(added=[first]), [], Counts(), PLAIN, embed, None, None, nothing)
    plan(Changes(added=[second]), [made.segment], made.counts, PLAIN, embed, None, None, nothing)
    assert calls == [["text", "Ada met Bo"], ["text"]]


def test_nothing_changes_nothing() -> None:
    made = plan(Changes(), [], Counts(documents=3), PLAIN, EMBEDDER.embed, None, None, nothing)
    assert made.segment.entries == 0
    assert made.counts == Counts(documents=3)
    assert not any(map(len, made.delete.values())) and not any(len(rows) for rows in made.add.values())


def test_an_embedder_that_fails_is_heard() -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        raise ModelUnavailable("no answer")

    with pytest.raises(ModelUnavailable):
        plan(Changes(added=[NEAR]), [], Counts(), PLAIN, embed, None, None, nothing)


class Knowing:
    """Embeds what it was told of, and notes what it was asked besides."""

    def __init__(self) -> None:
        self.told: set[str] = set()
        self.asked: set[str] = set()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked |= set(texts) - self.told
        return EMBEDDER.embed(texts)


@given(st.lists(batches, max_size=6))
@example([{"a": says(("Osprey", "met", "Bo"))}, {"b": says(("osprey", "Met", "Bo"))}, {"a": None}])  # respelled
def test_what_is_embedded_in_advance_is_all_that_commits_embed(history: list[Batch]) -> None:
    knowing = Knowing()
    planned = Planned(knowing)
    for batch in history:
        come = [moved(passage, id) for id, passage in batch.items() if passage is not None]
        texts = texts_of(come, MADE)
        assert len(texts) == len(set(texts))
        knowing.told.update(texts)
        planned.apply(batch)
        assert not knowing.asked


def test_what_an_index_does_not_keep_is_not_embedded_in_advance() -> None:
    passage = replace(NEAR, text="One sentence. And another.", title="Birds", about="Birds")
    whole = "Birds\nOne sentence. And another."
    said, names = ["Birds: One sentence.", "Birds: And another."], ["Osprey", "Ospreys"]
    fact = "Osprey met Ospreys"
    assert texts_of([passage, passage], MADE) == [whole, *said, fact, *names]
    assert texts_of([passage], MADE.model_copy(update={"alias_threshold": None})) == [whole, *said, fact]
    assert texts_of([passage], MADE.model_copy(update={"sentences": False})) == [whole, fact, *names]
