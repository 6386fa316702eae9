"""Tests of births, deaths and respellings: against a naive vote over the passages that are left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index import things
from index.delta import Delta
from index.graph.segment import Relation, Segment, total
from index.keys import entity_key
from index.types import Entity, Extraction, Fact, Key, Passage, Triple

from . import naive
from .naive import passages

batches = st.lists(st.dictionaries(st.sampled_from("abcd"), st.none() | passages, max_size=4), max_size=6)


@pytest.mark.parametrize(
    ("votes", "shown"),
    [
        ({}, None),
        ({"Ada": 0, "ada": -1}, None),
        ({"ada": 1, "Ada": 1}, "Ada"),
        ({"ada": 2, "Ada": 1}, "ada"),
        ({"Zoë": 3, "Zoe": 3, "zoe": 2}, "Zoe"),
    ],
)
def test_the_most_votes_win_and_ties_go_to_the_smallest(votes: dict[str, int], shown: str | None) -> None:
    assert things.spelling(votes) == shown


@given(batches)
def test_rows_follow_the_votes(history: list[dict[str, Passage | None]]) -> None:
    """Applying every batch's births, deaths and respellings gives the rows of a naive vote over what is left."""
    held: dict[str, Passage] = {}
    rows: dict[Key, Entity | Fact] = {}
    state = Segment({})
    for batch in history:
        delta = Delta()
        for place, passage in batch.items():
            if place in held:
                delta.retract(held.pop(place))
            if passage is not None:
                delta.assert_(passage)
                held[place] = passage
        touched = [*delta.entities, *delta.facts]
        before = things.votes([state[Relation.SPELLINGS].select(touched)])
        entities, facts = things.changes(delta, before)
        for change in (entities, facts):
            for row in change.gone:
                assert rows.pop(row.key) == row, "what goes is the row that is there"
            for row in change.come:
                assert row.key not in rows
                rows[row.key] = row
        state = total([state, delta.segment()])
        shown = {key: row.name if isinstance(row, Entity) else row.surface for key, row in rows.items()}
        assert shown == naive.spellings(held.values())


def test_a_change_without_effect_on_a_spelling_changes_no_row() -> None:
    once, again = (
        naive.passage(id, "text", "", "{}", Extraction(triples=(Triple("Ada", "met", "Bo"),))) for id in ("d1", "d2")
    )
    first, second = Delta(), Delta()
    first.assert_(once)
    second.assert_(again)
    before = things.votes([first.so_far(Relation.SPELLINGS)])
    assert before[entity_key("ada")] == {"Ada": 1}
    entities, facts = things.changes(second, before)
    assert not (entities.gone or entities.come or facts.gone or facts.come)
