"""A snapshot: everything a question may read, as of one manifest, and the way to the next one in O(delta)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import records
from .aliases import SCALE as ALIAS_SCALE
from .attributes import AttributeReader, Attributes
from .cosine import Vectors
from .graph.incidence import Incidence
from .graph.rows import SparseRows
from .graph.segment import Relation, Segment
from .holding import leaves, moved
from .keys import halves
from .limits import EXACT_MAX
from .manifest import Manifest
from .numbers import Grown, Numbers, numbered
from .records import TABLES, TableName
from .spoken import Spoken, follow, nothing_said
from .tables import open_dataset, read_among, read_columns, read_rows
from .types import Document, Entity, Fact, Key, Passage
from .vectors import VectorTable

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EdgeWeights:
    """Weights of the graph's edges (CogitoRAG 2.1): a mention, a supported fact, and the similarity of aliases."""

    mention: float = 1.0
    fact: float = 2.0
    alias: float = 2.0

    def scaled(self, mentions: Int64s, links: Int64s, aliases: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Weights of entries in 1/10,000, the unit of aliases: integers, so that sums are exact in any order."""
        pairs = ((mentions, self.mention * ALIAS_SCALE), (links, self.fact * ALIAS_SCALE), (aliases, self.alias))
        one, other, third = (np.rint(counts * weight).astype(np.int64) for counts, weight in pairs)
        return one, other, third


PLAIN_WEIGHTS = EdgeWeights()


@dataclass(frozen=True)
class Kinds:
    """The numberings that all snapshots of one reader share."""

    passages: Numbers
    entities: Numbers
    facts: Numbers
    terms: Numbers
    endpoints: Grown
    ranks: Grown
    weights: EdgeWeights
    exact_max: int
    """Rows of a table up to which its vectors are held in memory."""
    ranked: list[int]
    """Entities and passages whose rank is written: one kind may get its numbers long before the other."""
    attributes: AttributeReader

    @classmethod
    def fresh(cls, weights: EdgeWeights, exact_max: int) -> Kinds:
        return cls(
            Numbers(), Numbers(), Numbers(), Numbers(), Grown(2, np.int64), Grown(1, np.uint64), weights, exact_max,
            [0, 0], AttributeReader(),
        )  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """One manifest, opened. It never changes; any number of threads may read it.

    Things have dense numbers (see numbers.py). Nodes of the graph: entity e is 2e, passage p is 2p + 1.
    """

    folder: Path
    manifest: Manifest
    kinds: Kinds
    passages: Vectors
    """Vectors of living passages by passage number."""
    facts: Vectors
    """Vectors of living facts by fact number."""
    postings: SparseRows
    """term x passage: term frequency."""
    lengths: Int64s
    """Terms of each passage number; 0 for passages that are gone."""
    supports: SparseRows
    """fact x passage: 1."""
    graph: SparseRows
    """node x node, symmetric, weights in 1/10,000."""
    endpoints: Int64s
    """Entity numbers (head, tail) of each fact number, (facts, 2)."""
    ranks: NDArray[np.uint64]
    """Per node the first half of its key: an order that does not depend on history."""
    fragments: Mapping[TableName, frozenset[int]]
    spoken: Spoken
    """Sentences, names, titles and sessions; empty where the index keeps no sentences."""

    def rows(self, table: TableName, keys: Sequence[Key], without: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Rows of a table without their vectors and some other columns, in no particular order."""
        dataset = self.dataset(table)
        columns = [name for name in dataset.schema.names if name != "vector" and name not in without]
        return read_rows(dataset, keys, columns) if keys else []

    def documents_by_id(self, ids: Sequence[str]) -> dict[str, Document]:
        """Rows of these documents, tombstones included; unknown ids are left out."""
        rows = self.rows("documents", [records.document_key(id) for id in ids])
        return {row["id"]: records.document(row) for row in rows}

    def passage_rows(self, numbers: Iterable[int]) -> dict[int, Passage]:
        """Passages by number, without the entities and triples read in them: lists of lists take longest to fetch."""
        unread: dict[str, Any] = {"entities": (), "triples": ()}
        rows = self.rows("passages", [self.kinds.passages.keys[number] for number in numbers], without=[*unread])
        return {cast(int, self.kinds.passages.find(row["key"])): records.passage(row | unread) for row in rows}

    def fact_rows(self, numbers: Iterable[int]) -> dict[int, Fact]:
        rows = self.rows("facts", [self.kinds.facts.keys[number] for number in numbers])
        return {cast(int, self.kinds.facts.find(row["key"])): records.fact(row) for row in rows}

    def entity_rows(self, numbers: Iterable[int]) -> dict[int, Entity]:
        rows = self.rows("entities", [self.kinds.entities.keys[number] for number in numbers])
        return {cast(int, self.kinds.entities.find(row["key"])): records.entity(row) for row in rows}

    def mentioning(self, entity: int) -> Int64s:
        """Numbers of the passages that mention an entity; their count is n_v."""
        if 2 * entity >= self.graph.n_rows:
            return np.empty(0, np.int64)
        nodes, _ = self.graph.row(2 * entity)
        return np.asarray(nodes[nodes % 2 == 1] // 2, dtype=np.int64)

    @cached_property
    def live_passages(self) -> Int64s:
        """Numbers of all living passages, ascending."""
        numbers = np.arange(len(self.lengths))
        return numbers[self.passages.has(numbers)]

    @cached_property
    def attributes(self) -> Attributes:
        """What passages may be filtered by; those who never filter never pay for it."""
        passages = self.dataset("passages")
        return self.kinds.attributes.read(self.manifest.number, passages, self.kinds.passages, len(self.lengths))

    def dataset(self, table: TableName) -> Any:
        if table not in self._datasets:
            self._datasets[table] = open_dataset(self.folder / "tables", table, self.manifest.tables[table])
        return self._datasets[table]

    @cached_property
    def _datasets(self) -> dict[TableName, Any]:
        return {}


def empty(folder: Path, manifest: Manifest, weights: EdgeWeights, exact_max: int = EXACT_MAX) -> Snapshot:
    """The snapshot before the first batch, of the namespace that `manifest` belongs to."""
    d = manifest.fingerprint.dimensions
    none = SparseRows.from_entries([], [], [], 0)
    kinds = Kinds.fresh(weights, exact_max)
    return Snapshot(
        folder, manifest, kinds, VectorTable.empty(d), VectorTable.empty(d), none, np.zeros(0, np.int64), none, none,
        np.zeros((0, 2), np.int64), np.zeros(0, np.uint64), {name: frozenset() for name in TABLES}, nothing_said(d),
    )  # fmt: skip


class Step(NamedTuple):
    """What a snapshot becomes, as far as it is read from disk: the tables opened, and the rows that come.

    Those of a table whose vectors are left in it are without them.
    """

    new: Snapshot
    facts: pa.Table
    passages: pa.Table
    sentences: pa.Table


def step(old: Snapshot, manifest: Manifest, delta: Segment) -> Step:
    """Read what `advance` needs for the same arguments; any number of threads may."""
    new = replace(old, manifest=manifest)
    counts, exact_max = manifest.counts, old.kinds.exact_max
    fact_vectors = [] if leaves(old.facts, new.dataset("facts"), counts.facts, exact_max) else ["vector"]
    passage_vectors = [] if leaves(old.passages, new.dataset("passages"), counts.passages, exact_max) else ["vector"]
    facts = _come(old, new, "facts", _added(delta[Relation.FACTS]), ["key", "head", "tail", *fact_vectors])
    passages = _come(old, new, "passages", _added(delta[Relation.PASSAGES]), ["key", *passage_vectors])
    sentences = _come(old, new, "sentences", _added(delta[Relation.SENTENCES], by_column=True), ["key", "vector"])
    return Step(new, facts, passages, sentences)


def advance(old: Snapshot, manifest: Manifest, delta: Segment, read: Step | None = None) -> Snapshot:
    """The snapshot of `manifest`, newer or older, which is `old` plus `delta`; `old` stays as it is.

    Cost: the delta, and copying some 40 bytes for every number ever given. One thread at a time advances snapshots
    of one reader; it need not wait for the disk where `step` has read before.
    """
    kinds = old.kinds
    new, fact_rows, passage_rows, sentence_rows = read or step(old, manifest, delta)

    dataset = new.dataset("passages")
    passages = _moved(old.passages, dataset, kinds.passages, delta[Relation.PASSAGES], passage_rows)
    facts = _moved(old.facts, new.dataset("facts"), kinds.facts, delta[Relation.FACTS], fact_rows)
    heads, tails = (kinds.entities.assign(*_halves(fact_rows[end])) for end in ("head", "tail"))
    kinds.endpoints.fill(kinds.facts.of(fact_rows["key"].to_pylist()), np.stack([heads, tails], axis=1))

    terms, in_passages, frequency = numbered(delta[Relation.TERMS], kinds.terms, kinds.passages)
    of_facts, supporting, support = numbered(delta[Relation.SUPPORTS], kinds.facts, kinds.passages)
    ends, others, weights = _edges(delta, kinds)
    spoken = follow(old.spoken, delta, kinds.passages, sentence_rows)
    lengths = np.zeros(len(kinds.passages), np.int64)
    lengths[: len(old.lengths)] = old.lengths
    np.add.at(lengths, in_passages, frequency)
    nodes = 2 * max(len(kinds.entities), len(kinds.passages))
    return replace(
        new,
        passages=passages,
        facts=facts,
        postings=old.postings.grown(terms, in_passages, frequency, len(kinds.terms)),
        lengths=lengths,
        supports=old.supports.grown(of_facts, supporting, support, len(kinds.facts)),
        graph=old.graph.grown(ends, others, weights, nodes),
        endpoints=cast(Int64s, kinds.endpoints.view(len(kinds.facts))),
        ranks=_ranks(kinds),
        fragments={name: frozenset(f.fragment_id for f in new.dataset(name).get_fragments()) for name in TABLES},
        spoken=spoken,
    )


def _added(entries: Incidence, *, by_column: bool = False) -> set[Key]:
    """Keys of the table rows that a delta adds."""
    keys = entries.cols() if by_column else entries.rows()
    return {key for key, weight in zip(keys, entries.weight.tolist(), strict=True) if weight > 0}


def _come(old: Snapshot, new: Snapshot, table: TableName, keys: set[Key], columns: list[str]) -> pa.Table:
    """The rows with these keys, which came to a table."""
    dataset = new.dataset(table)
    if not keys:
        return dataset.schema.empty_table().select(columns)
    if new.manifest.number < old.manifest.number:
        # What comes back on the way to an older snapshot was deleted since, from fragments of any age.
        return read_columns(dataset, sorted(keys), columns)
    # New rows are in new fragments.
    fresh = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id not in old.fragments[table]]
    return read_among(dataset, fresh, sorted(keys), columns)


def _moved(held: Vectors, dataset: Any, numbers: Numbers, rows: Incidence, come: pa.Table) -> Vectors:
    gone = [key for key, weight in zip(rows.rows(), rows.weight.tolist(), strict=True) if weight < 0]
    dead = np.array([number for number in map(numbers.find, gone) if number is not None], np.int64)
    born = numbers.assign(*_halves(come["key"]))
    vectors = records.matrix(come["vector"]) if "vector" in come.column_names else None
    return moved(held, dataset, numbers, born, dead, vectors)


def _edges(delta: Segment, kinds: Kinds) -> tuple[Int64s, Int64s, Int64s]:
    """The delta of CogitoRAG's symmetric graph, [[links + aliases, mentions], [mentions', 0]], as node entries."""
    entities, in_passages, mentions = numbered(delta[Relation.MENTIONS], kinds.entities, kinds.passages)
    low, high, links = numbered(delta[Relation.LINKS], kinds.entities, kinds.entities)
    one, other, aliases = numbered(delta[Relation.ALIASES], kinds.entities, kinds.entities)
    mentioned, linked, alike = kinds.weights.scaled(mentions, links, aliases)
    ends = [2 * entities, 2 * in_passages + 1, 2 * low, 2 * high, 2 * one]
    others = [2 * in_passages + 1, 2 * entities, 2 * high, 2 * low, 2 * other]
    weights = [mentioned, mentioned, linked, linked, alike]
    return np.concatenate(ends), np.concatenate(others), np.concatenate(weights)


def _ranks(kinds: Kinds) -> NDArray[np.uint64]:
    """The rank of every node; those of things seen since the last call are written first."""
    for offset, numbers in enumerate((kinds.entities, kinds.passages)):
        first = kinds.ranked[offset]
        high = np.array([int.from_bytes(key[:8]) for key in numbers.keys[first:]], np.uint64)
        kinds.ranks.fill(2 * np.arange(first, len(numbers)) + offset, high[:, None])
        kinds.ranked[offset] = len(numbers)
    nodes = 2 * max(len(kinds.entities), len(kinds.passages))
    return cast(NDArray[np.uint64], kinds.ranks.view(nodes)[:, 0])


def _halves(column: pa.ChunkedArray) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    return halves(column.to_pylist())
