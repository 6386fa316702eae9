"""Tests of rows: what is written to a table is what is read from it, to the last character."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index import records
from index.keys import key
from index.models.base import unit_rows
from index.records import TABLES, schemas
from index.types import Document, Entity, Extraction, Fact, Passage, Triple

D = 4
SCHEMAS = schemas(D, entity_vectors=True)

# Everything that UTF-8 can hold, NUL and line ends included.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.binary(min_size=16, max_size=16)
moments = st.none() | st.integers(-(2**63), 2**63 - 1)
triples = st.builds(Triple, texts, texts, texts)
listed = st.lists(texts, max_size=3).map(tuple)
extractions = st.builds(Extraction, texts, listed, st.lists(triples, max_size=3).map(tuple), st.booleans())
documents = st.builds(
    Document,
    texts, st.integers(0, 2**63 - 1), st.booleans(), texts, texts, texts, moments, st.integers(0, 2**63 - 1),
    st.lists(keys, max_size=3).map(tuple),
)  # fmt: skip
passages = st.builds(Passage, keys, texts, texts, texts, texts, moments, extractions)
facts = st.builds(Fact, keys, keys, keys, st.tuples(texts, texts, texts), texts)
entities = st.builds(Entity, keys, texts, texts)


def vectors(rows: int) -> records.Vectors:
    return unit_rows(np.random.default_rng(rows).normal(size=(rows, D)))


@given(st.lists(documents, max_size=4))
def test_documents_come_back(rows: list[Document]) -> None:
    table = records.documents(rows, SCHEMAS["documents"])
    assert [records.document(row) for row in table.to_pylist()] == rows
    assert table["key"].to_pylist() == [records.document_key(row.id) for row in rows]


@given(st.lists(passages, max_size=4))
def test_passages_come_back_with_the_same_content(rows: list[Passage]) -> None:
    table = records.passages(rows, vectors(len(rows)), SCHEMAS["passages"])
    read = [records.passage(row) for row in table.to_pylist()]
    assert read == rows
    assert [*map(records.content, read)] == [*map(records.content, rows)], "a retraction must cancel the assertion"
    assert np.array_equal(records.matrix(table["vector"]), vectors(len(rows)))


@given(st.lists(facts, max_size=4), st.lists(entities, max_size=4))
def test_facts_and_entities_come_back(some: list[Fact], others: list[Entity]) -> None:
    table = records.facts(some, vectors(len(some)), SCHEMAS["facts"])
    assert [records.fact(row) for row in table.to_pylist()] == some
    table = records.entities(others, vectors(len(others)), SCHEMAS["entities"])
    assert [records.entity(row) for row in table.to_pylist()] == others


@given(passages, passages)
def test_contents_differ_where_rows_differ(one: Passage, other: Passage) -> None:
    assert (records.content(one) == records.content(other)) == (one == other)


def test_a_degraded_reading_is_another_content() -> None:
    passage = Passage(key("row", "p"), "d", "", "text", "{}", None)
    degraded = replace(passage, extraction=Extraction(degraded=True))
    assert records.content(passage) != records.content(degraded)


def test_entities_have_vectors_only_where_aliases_are_kept() -> None:
    schema = schemas(D, entity_vectors=False)["entities"]
    assert "vector" not in schema.names and "vector" in SCHEMAS["entities"].names
    assert records.entities([Entity(bytes(16), "ada", "Ada")], None, schema).num_rows == 1


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_keyed_by_16_bytes(name: records.TableName) -> None:
    assert SCHEMAS[name].field("key").type == pa.binary(16)


def test_a_matrix_of_several_chunks_and_of_none() -> None:
    chunk = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(8, dtype=np.float32)), D)
    column = pa.chunked_array([chunk, chunk.slice(1)])
    assert records.matrix(column).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [4, 5, 6, 7]]
    assert records.matrix(pa.chunked_array([], type=chunk.type)).shape == (0, D)
