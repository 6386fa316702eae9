"""From changed documents to every row and entry that changes with them, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import records, things
from .aliases import Aliases, difference
from .delta import Delta, indexed_text
from .graph.segment import Relation, Segment
from .manifest import Counts
from .records import TableName
from .types import Document, Entity, Key, Passage

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts -> unit vectors (n, d)."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a batch does to the documents of a namespace; everything else follows from it.

    A document's new row in `documents` takes the place of its former one in `replaced`. `removed` and `added` are
    passage rows; a passage whose row changes is in both.
    """

    documents: Sequence[Document] = ()
    replaced: Sequence[Document] = ()
    removed: Sequence[Passage] = ()
    added: Sequence[Passage] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows to delete and to add, entries to sum, and the sizes afterwards; it can be written more than once."""

    delete: Mapping[TableName, Sequence[Key]]
    add: Mapping[TableName, pa.Table]
    segment: Segment
    counts: Counts


def plan(
    changes: Changes,
    segments: Iterable[Segment],
    counts: Counts,
    schemas: Mapping[TableName, pa.Schema],
    embed: Embed,
    aliases: Aliases | None,
) -> Plan:
    """Work out a batch against the state that is the sum of `segments`.

    `aliases` (None where none are kept) is moved to the state after the batch: drop it when the batch is not
    committed. Raises what `embed` raises.
    """
    delta = Delta()
    for passage in changes.removed:
        delta.retract(passage)
        delta.add(Relation.PASSAGES, passage.key, records.content(passage), -1)
    for passage in changes.added:
        delta.assert_(passage)
        delta.add(Relation.PASSAGES, passage.key, records.content(passage), +1)

    touched = [*delta.entities, *delta.facts]
    before = things.votes(segment[Relation.SPELLINGS].select(touched) for segment in segments)
    entities, facts = things.changes(delta, before)
    for relation, change in ((Relation.ENTITIES, entities), (Relation.FACTS, facts)):
        for sign, rows in ((-1, change.gone), (+1, change.come)):
            for row in rows:
                delta.add(relation, row.key, records.content(row), sign)

    named = [entity.name for entity in entities.come] if aliases is not None else []
    texts = [*map(indexed_text, changes.added), *(fact.surface for fact in facts.come), *named]
    vectors = embed(texts)
    split = len(changes.added), len(changes.added) + len(facts.come)
    entity_vectors = None if aliases is None else vectors[split[1] :]
    if aliases is not None and entity_vectors is not None:
        _join(delta, aliases, entities, entity_vectors, segments)

    return Plan(
        delete={
            "documents": [records.document_key(document.id) for document in changes.replaced],
            "passages": [passage.key for passage in changes.removed],
            "entities": [entity.key for entity in entities.gone],
            "facts": [fact.key for fact in facts.gone],
        },
        add={
            "documents": records.documents(changes.documents, schemas["documents"]),
            "passages": records.passages(changes.added, vectors[: split[0]], schemas["passages"]),
            "entities": records.entities(entities.come, entity_vectors, schemas["entities"]),
            "facts": records.facts(facts.come, vectors[split[0] : split[1]], schemas["facts"]),
        },
        segment=delta.segment(),
        counts=Counts(
            documents=counts.documents + _living(changes.documents) - _living(changes.replaced),
            passages=counts.passages + len(changes.added) - len(changes.removed),
            entities=counts.entities + len(entities.come) - len(entities.gone),
            facts=counts.facts + len(facts.come) - len(facts.gone),
        ),
    )


def _join(
    delta: Delta,
    aliases: Aliases,
    change: things.RowChange[Entity],
    vectors: NDArray[np.float32],
    segments: Iterable[Segment],
) -> None:
    """Add the alias edges of the born and take those of the dead; a respelled entity is both."""
    gone = [entity.key for entity in change.gone]
    old: dict[tuple[Key, Key], int] = {}
    for incidence in (segment[Relation.ALIASES].select(gone) for segment in segments):
        for u, v, weight in zip(incidence.rows(), incidence.cols(), incidence.weight.tolist(), strict=True):
            old[u, v] = old.get((u, v), 0) + weight
    # An edge is stored in both directions, and each is read only where its first end goes.
    old |= {(v, u): weight for (u, v), weight in old.items()}
    aliases.kill(gone)
    aliases.bear(change.come, vectors)
    new = aliases.edges([entity.key for entity in change.come])
    for (u, v), weight in difference(old, new).items():
        delta.add(Relation.ALIASES, u, v, weight)


def _living(documents: Sequence[Document]) -> int:
    return sum(not document.deleted for document in documents)
