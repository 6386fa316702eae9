"""Tests of what passages contribute: against a naive count, and that a retraction leaves nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from index.delta import Delta, indexed_text
from index.graph.segment import Relation, total
from index.keys import entity_key, fact_key
from index.types import Extraction, Passage, Triple

from . import naive
from .naive import entries, passages


@given(st.lists(passages, max_size=8, unique_by=lambda passage: passage.key))
def test_a_delta_is_what_a_naive_count_gives(added: list[Passage]) -> None:
    delta = Delta()
    for passage in added:
        delta.assert_(passage)
    segment = delta.segment()
    for relation, expected in naive.relations(added).items():
        assert entries(segment[relation]) == expected, relation.name


@given(st.lists(st.tuples(passages, st.booleans()), max_size=8))
def test_retractions_count_down_in_one_delta_and_over_many(history: list[tuple[Passage, bool]]) -> None:
    whole, steps = Delta(), []
    for passage, goes in history:
        step = Delta()
        for delta in (whole, step):
            delta.retract(passage) if goes else delta.assert_(passage)
        steps.append(step.segment())
    came = naive.relations(passage for passage, goes in history if not goes)
    went = naive.relations(passage for passage, goes in history if goes)
    for relation in came:
        came[relation].subtract(went[relation])
        expected = {pair: weight for pair, weight in came[relation].items() if weight}
        assert entries(whole.segment()[relation]) == entries(total(reversed(steps))[relation]) == expected


@given(passages)
def test_assert_and_retract_is_nothing(passage: Passage) -> None:
    delta = Delta()
    delta.retract(passage)
    delta.assert_(passage)
    assert delta.segment().entries == 0
    assert len(delta.so_far(Relation.SPELLINGS)) == 0


def read(*triples: tuple[str, str, str]) -> Passage:
    return naive.passage("d", "text", "", "{}", Extraction(triples=tuple(Triple(*triple) for triple in triples)))


def test_a_triple_without_a_name_at_one_end_is_no_fact() -> None:
    delta = Delta()
    delta.assert_(read(("", "met", "Bo"), ("Ada", "met", " .-"), ("Ada", "", "Bo")))
    assert list(delta.facts) == [fact_key("ada", "", "bo")]
    assert {entity.norm for entity in delta.entities.values()} == {"ada", "bo"}


def test_a_fact_counts_once_a_passage_and_each_of_its_spellings_once() -> None:
    passage = read(("Ada", "met", "Bo"), ("ADA", "met", "Bo"), ("Ada", "met", "Bo"), ("Bo", "met", "Ada"))
    delta = Delta()
    delta.assert_(passage)
    segment = delta.segment()
    fact = fact_key("ada", "met", "bo")
    assert entries(segment[Relation.SUPPORTS])[fact, passage.key] == 1
    assert list(entries(segment[Relation.LINKS]).values()) == [2], "one a fact, whatever its direction"
    votes = delta.so_far(Relation.SPELLINGS)
    heard = zip(votes.rows(), votes.text.to_pylist(), strict=True)
    assert sorted(text for thing, text in heard if thing == entity_key("ada")) == ["ADA", "Ada"]
    assert set(votes.weight.tolist()) == {1}


def test_a_fact_about_itself_is_no_link() -> None:
    delta = Delta()
    delta.assert_(read(("Ada", "is", "ada")))
    assert len(delta.segment()[Relation.LINKS]) == 0
    assert len(delta.segment()[Relation.MENTIONS]) == 1


def test_a_title_is_searched_and_embedded_with_its_text() -> None:
    assert indexed_text(naive.passage("d", "text", "Title", "{}", Extraction())) == "Title\ntext"
    assert indexed_text(naive.passage("d", "text", "", "{}", Extraction())) == "text"
