"""The tables and relations of a namespace as plans alone change them, without a disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from index import records
from index.aliases import Aliases
from index.graph.segment import Segment
from index.manifest import Counts
from index.plan import Changes, Embed, Plan, plan
from index.records import TABLES, TableName
from index.titles import Titles
from index.types import Document, Key, Passage

from .naive import moved
from .written import EMBEDDER

SCHEMAS = records.schemas(EMBEDDER.dimensions, entity_vectors=True)
THRESHOLD = 0.5

Batch = Mapping[str, Passage | None]


class Planned:
    """The tables and relations of a namespace, kept in dictionaries and changed by plans alone."""

    def __init__(self, embed: Embed = EMBEDDER.embed) -> None:
        self.embed = embed
        self.rows: dict[TableName, dict[Key, Mapping[str, Any]]] = {name: {} for name in TABLES}
        self.segments: list[Segment] = []
        self.counts = Counts()
        self.documents: dict[str, Document] = {}
        self.passages: dict[str, Passage] = {}
        self.aliases = Aliases(EMBEDDER.dimensions, THRESHOLD, same_digits=True)
        self.titles = Titles({})

    def apply(self, batch: Batch) -> None:
        """Give documents another passage, or none: then they are deleted."""
        version = len(self.segments)
        come = {id: moved(passage, id) for id, passage in batch.items() if passage is not None}
        rows = [document(id, version, come.get(id)) for id in batch]
        changes = Changes(
            documents=rows,
            replaced=[self.documents[id] for id in batch if id in self.documents],
            removed=[self.passages.pop(id) for id in batch if id in self.passages],
            added=list(come.values()),
        )
        before = {passage.key: passage for passage in [*self.passages.values(), *changes.removed]}
        made = plan(
            changes, self.segments, self.counts, SCHEMAS, self.embed, self.aliases, self.titles,
            lambda keys: {key: before[key] for key in keys},
        )  # fmt: skip
        self.write(made)
        self.documents |= {row.id: row for row in rows}
        self.passages |= come

    def write(self, batch: Plan) -> None:
        for name in TABLES:
            assert len(set(batch.delete[name])) == len(batch.delete[name])
            for key in batch.delete[name]:
                del self.rows[name][key]
            for row in batch.add[name].to_pylist():
                assert row["key"] not in self.rows[name], f"{name} would have a row twice"
                self.rows[name][row["key"]] = row
        self.segments.append(batch.segment)
        self.counts = batch.counts


def document(id: str, version: int, passage: Passage | None) -> Document:
    if passage is None:
        return Document(id, version, True, "", "", "{}", None, version, ())
    return Document(id, version, False, "", "", passage.metadata, None, version, (passage.key,))
