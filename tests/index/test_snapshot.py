"""Tests of snapshots: advanced over any changes they equal one loaded afresh, and old ones stay as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index import maintenance
from index.graph.rows import SparseRows
from index.keys import entity_key
from index.reader import Reader
from index.snapshot import Snapshot
from index.types import Entity, Key

from .written import EMBEDDER, Facts, Written

FACTS = (
    ("Osprey", "met", "Bo"),
    ("Ospreys", "met", "Bo"),
    ("OSPREY", "met", "bo"),
    ("Ada", "is", "Ada"),
    ("Ada", "saw", "Pier 9"),
)
QUESTION = EMBEDDER.embed(["Who met the Osprey?"])[0].astype(np.float64)

batches = st.dictionaries(st.sampled_from("abcd"), st.none() | st.lists(st.sampled_from(FACTS), max_size=3), max_size=3)
steps = st.tuples(batches, st.sampled_from(["refresh", "refresh", "later", "merge", "compact"]))


def content(snapshot: Snapshot) -> dict[str, Any]:
    """Everything a snapshot holds, by key instead of by number."""
    kinds = snapshot.kinds
    passages, facts, entities, terms = (n.keys for n in (kinds.passages, kinds.facts, kinds.entities, kinds.terms))
    nodes = {2 * number: key for number, key in enumerate(entities)}
    nodes |= {2 * number + 1: key for number, key in enumerate(passages)}
    by_number = dict(enumerate(passages))
    living = snapshot.live_passages.tolist()
    known = [number for number in range(len(snapshot.endpoints)) if snapshot.facts.row_of(number) >= 0]
    graph = rows_by_key(snapshot.graph, nodes, nodes)
    ranks = {nodes[node]: int(snapshot.ranks[node]) for node in range(snapshot.graph.n_rows) if node in nodes}
    return {
        "passage vectors": {passages[number]: snapshot.passages.scores([number], QUESTION)[0] for number in living},
        "fact vectors": {facts[number]: snapshot.facts.scores([number], QUESTION)[0] for number in known},
        "lengths": {passages[number]: int(snapshot.lengths[number]) for number in living},
        "endpoints": {facts[number]: [entities[end] for end in snapshot.endpoints[number]] for number in known},
        "mentioning": {
            entities[number]: {passages[passage] for passage in found}
            for number in range(len(entities))
            if (found := snapshot.mentioning(number).tolist())
        },
        "ranks": {key: rank for key, rank in ranks.items() if key in graph},
        "graph": graph,
        "postings": rows_by_key(snapshot.postings, dict(enumerate(terms)), by_number),
        "supports": rows_by_key(snapshot.supports, dict(enumerate(facts)), by_number),
        "texts": {row.key: row.text for row in snapshot.passage_rows(living).values()},
    }


def rows_by_key(rows: SparseRows, names: Mapping[int, Key], cols: Mapping[int, Key]) -> dict[Key, dict[Key, int]]:
    found = {}
    for number in range(rows.n_rows):
        held, weights = rows.row(number)
        if len(held):
            found[names[number]] = {cols[c]: w for c, w in zip(held.tolist(), weights.tolist(), strict=True)}
    return found


@given(history=st.lists(steps, max_size=7))
@settings(max_examples=16)
def test_advancing_equals_loading_and_old_snapshots_stay(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[dict[str, Facts | None], str]],
) -> None:
    written = Written.create(tmp_path_factory.mktemp("history"))
    reader = Reader(written.folder)
    held: list[tuple[Snapshot, dict[str, Any]]] = []
    for batch, then in history:
        put = {id: facts for id, facts in batch.items() if facts is not None}
        written.commit(put, gone=[id for id in batch if id not in put])
        if then == "merge":
            maintenance.merge(written.writer, fan=2)
        elif then == "compact":
            maintenance.compact(written.writer)
        elif then == "refresh":
            snapshot = reader.refresh()
            held.append((snapshot, content(snapshot)))
            assert held[-1][1] == content(Reader(written.folder).snapshot)
    assert content(reader.refresh()) == content(Reader(written.folder).snapshot)
    for snapshot, before in held:
        assert content(snapshot) == before
    written.writer.close()


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """Two passages that state one fact, one of them another as well; "osprey" and "ospreys" are aliases."""
    written = Written.create(tmp_path)
    written.commit({"a": [FACTS[0]], "b": [FACTS[0], FACTS[1]], "c": [FACTS[4]]}, gone=["d"])
    return Reader(tmp_path).snapshot


def node(snapshot: Snapshot, norm: str) -> int:
    number = snapshot.kinds.entities.find(entity_key(norm))
    assert number is not None
    return 2 * number


def test_the_weights_of_the_graph(snapshot: Snapshot) -> None:
    osprey, ospreys, bo = (node(snapshot, norm) for norm in ("osprey", "ospreys", "bo"))
    cols, weights = snapshot.graph.row(osprey)
    row = dict(zip(cols.tolist(), weights.tolist(), strict=True))
    names = EMBEDDER.embed(["Osprey", "Ospreys"]).astype(np.float64)
    assert row.pop(bo) == 2 * 20_000, "two passages state it"
    assert row.pop(ospreys) == 2 * round(float(names[0] @ names[1]) * 10_000)
    assert set(row.values()) == {10_000} and all(col % 2 for col in row)
    assert {col // 2 for col in row} == set(snapshot.mentioning(osprey // 2).tolist())
    whole = snapshot.graph.to_csr(snapshot.graph.n_rows)
    assert (whole != whole.T).nnz == 0, "the graph is symmetric"


def test_rows_are_read_by_number_and_by_id(snapshot: Snapshot) -> None:
    living = snapshot.live_passages.tolist()
    assert {row.document for row in snapshot.passage_rows(living).values()} == {"a", "b", "c"}
    numbers = range(len(snapshot.endpoints))
    assert {fact.surface for fact in snapshot.fact_rows(numbers).values()} == {
        "Osprey met Bo", "Ospreys met Bo", "Ada saw Pier 9"
    }  # fmt: skip
    pier = node(snapshot, "pier 9") // 2
    assert snapshot.entity_rows([pier]) == {pier: Entity(entity_key("pier 9"), "pier 9", "Pier 9")}
    documents = snapshot.documents_by_id(["a", "d", "never"])
    assert {id: row.deleted for id, row in documents.items()} == {"a": False, "d": True}
    assert snapshot.rows("facts", []) == [] and "vector" not in snapshot.rows("facts", snapshot.kinds.facts.keys)[0]


def test_a_rank_is_the_first_half_of_the_key(snapshot: Snapshot) -> None:
    def ranks(keys: Sequence[Key], offset: int) -> list[tuple[int, int]]:
        return [(int(snapshot.ranks[2 * n + offset]), int.from_bytes(key[:8])) for n, key in enumerate(keys)]

    pairs = [*ranks(snapshot.kinds.entities.keys, 0), *ranks(snapshot.kinds.passages.keys, 1)]
    assert all(rank == expected for rank, expected in pairs)


def test_an_entity_that_no_graph_knows_is_mentioned_nowhere(snapshot: Snapshot) -> None:
    assert snapshot.mentioning(10_000).tolist() == []
