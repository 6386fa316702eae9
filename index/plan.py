"""From changed documents to every row and entry that changes with them, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import records, things, titles
from .aliases import Aliases, difference
from .delta import Delta, facts_of, indexed_text
from .graph.segment import Relation, Segment
from .manifest import Counts, Fingerprint
from .naming import sentences_of
from .records import TableName
from .titles import Read, Titles
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
    segments: Sequence[Segment],
    counts: Counts,
    schemas: Mapping[TableName, pa.Schema],
    embed: Embed,
    aliases: Aliases | None,
    living: Titles | None,
    read: Read,
) -> Plan:
    """Work out a batch against the state that is the sum of `segments`; `read` gives its passages.

    `aliases` (None where none are kept) and the `living` titles (None where no sentences are kept) are moved to the
    state after the batch: drop them when the batch is not committed. Raises what `embed` and `read` raise.
    """
    delta = Delta()
    for passage in changes.removed:
        delta.retract(passage)
        delta.add(Relation.PASSAGES, passage.key, records.content(passage), -1)
    for passage in changes.added:
        delta.assert_(passage)
        delta.add(Relation.PASSAGES, passage.key, records.content(passage), +1)
    silent, spoken = ([], []) if living is None else _speak(delta, changes, segments, living, read)

    touched = [*delta.entities, *delta.facts]
    before = things.votes(segment[Relation.SPELLINGS].select(touched) for segment in segments)
    entities, facts = things.changes(delta, before)
    for relation, change in ((Relation.ENTITIES, entities), (Relation.FACTS, facts)):
        for sign, rows in ((-1, change.gone), (+1, change.come)):
            for row in rows:
                delta.add(relation, row.key, records.content(row), sign)

    named = [entity.name for entity in entities.come] if aliases is not None else []
    said = [delta.sentences[key].text for key in spoken]
    texts = [*map(indexed_text, changes.added), *(fact.surface for fact in facts.come), *said, *named]
    of_passages, of_facts, of_sentences, of_names = _split(embed(texts), len(changes.added), len(facts.come), len(said))
    if aliases is not None:
        _join(delta, aliases, entities, of_names, segments)

    return Plan(
        delete={
            "documents": [records.document_key(document.id) for document in changes.replaced],
            "passages": [passage.key for passage in changes.removed],
            "entities": [entity.key for entity in entities.gone],
            "facts": [fact.key for fact in facts.gone],
            "sentences": silent,
        },
        add={
            "documents": records.documents(changes.documents, schemas["documents"]),
            "passages": records.passages(changes.added, of_passages, schemas["passages"]),
            "entities": records.entities(entities.come, None if aliases is None else of_names, schemas["entities"]),
            "facts": records.facts(facts.come, of_facts, schemas["facts"]),
            "sentences": records.sentences(spoken, of_sentences, schemas["sentences"]),
        },
        segment=delta.segment(),
        counts=Counts(
            documents=counts.documents + _living(changes.documents) - _living(changes.replaced),
            passages=counts.passages + len(changes.added) - len(changes.removed),
            entities=counts.entities + len(entities.come) - len(entities.gone),
            facts=counts.facts + len(facts.come) - len(facts.gone),
        ),
    )


def texts_of(passages: Iterable[Passage], made: Fingerprint) -> list[str]:
    """Every text that a commit of these passages, already read, may want embedded by an index that is `made` so.

    Which spelling of a fact or name an index shows, its other documents decide as well; each is among these, so once
    all of them are embedded, committing the passages embeds nothing else, whatever else is in the index or comes later.
    """
    texts: dict[str, None] = {}
    for passage in passages:
        texts[indexed_text(passage)] = None
        if made.sentences:
            texts.update(dict.fromkeys(sentence.text for sentence in sentences_of(passage)))
        for fact, heard in facts_of(passage.extraction):
            texts[fact.surface] = None
            if made.alias_threshold is not None:
                texts.update(dict.fromkeys(surface for thing, surface in heard if thing != fact.key))
    return list(texts)


def _speak(
    delta: Delta, changes: Changes, segments: Sequence[Segment], living: Titles, read: Read
) -> tuple[list[Key], list[Key]]:
    """Add what the sentences, titles and sessions of a batch change; returns the sentences that go and that come."""
    gone = {passage.key: delta.speak(passage, -1) for passage in changes.removed}
    come = {passage.key: delta.speak(passage, +1) for passage in changes.added}
    titles.join(delta, living, gone, come, segments, read)
    for sign, documents in ((-1, changes.replaced), (+1, changes.documents)):
        for document in documents:
            delta.take_turns(document, sign)
    silent, spoken = (
        {sentence.key: None for said in passages.values() for sentence in said} for passages in (gone, come)
    )
    return [key for key in silent if key not in spoken], [key for key in spoken if key not in silent]


def _split(vectors: NDArray[np.float32], *sizes: int) -> list[NDArray[np.float32]]:
    return np.split(vectors, np.cumsum(sizes))


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
