"""What two snapshots do not have in common: documents, passages, entities and facts that came, went or changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from index.graph.incidence import Incidence
from index.graph.segment import Relation
from index.history import When, between, standing
from index.home import Home
from index.manifest import Manifest
from index.records import TableName
from index.tables import open_dataset, read_rows
from index.types import Key

from .history import manifest_of


class Change(BaseModel):
    """One row. It came where `before` is null, went where `after` is null, and reads otherwise where neither is.

    Where both are the same, something else of the row changed: its title, time, metadata, or what was read in it.
    """

    id: str
    """Of a document its id; of all others the key, 32 hexadecimal digits."""
    document: str | None = None
    """Of a passage."""
    before: str | None
    after: str | None
    """A document's title, a passage's text, an entity's or fact's spelling."""


class Changes(BaseModel):
    """How many rows of one kind came, went and changed, and the first of them."""

    came: int
    went: int
    changed: int
    rows: list[Change]
    """In order of key; not more than were asked for."""


class Diff(BaseModel):
    """How the snapshot `after` differs from `before`; either may be the newer one."""

    namespace: str
    before: int
    after: int
    documents: Changes
    """Changed are those of another version."""
    passages: Changes
    entities: Changes
    facts: Changes


def diff(home: Home, namespace: str, first: When, second: When, limit: int) -> Diff:
    """Compare two snapshots of a namespace, naming at most `limit` rows of each kind.

    Costs the segments that are not in both and, for the documents, a look at the versions of all. Raises NotFound and
    SnapshotGone as History.snapshot does, also where one of the two is cleaned away meanwhile.
    """
    folder = home.incarnation(namespace)
    before, after = (manifest_of(home, namespace, folder, when) for when in (first, second))
    with standing(folder, before.number, after.number):
        delta = between(folder, before, after)
        pair = _Pair(folder, before, after, limit)
        return Diff(
            namespace=namespace,
            before=before.number,
            after=after.number,
            documents=pair.changes("documents", pair.documents()),
            passages=pair.changes("passages", _sides(delta[Relation.PASSAGES])),
            entities=pair.changes("entities", _sides(delta[Relation.ENTITIES])),
            facts=pair.changes("facts", _sides(delta[Relation.FACTS])),
        )


_SHOWN: Final[Mapping[TableName, Sequence[str]]] = {
    "documents": ("title", "id"),
    "passages": ("text", "document"),
    "entities": ("name",),
    "facts": ("surface",),
}
"""The column that is told of a row, and what else is read."""

Sides = Mapping[Key, tuple[bool, bool]]
"""Rows whose content is not in both snapshots, by key: whether they are in the one before, and in the one after."""


def _sides(rows: Incidence) -> Sides:
    sides: dict[Key, tuple[bool, bool]] = {}
    for key, weight in zip(rows.rows(), rows.weight.tolist(), strict=True):
        was, is_there = sides.get(key, (False, False))
        sides[key] = (was or weight < 0, is_there or weight > 0)
    return sides


class _Pair:
    """Reads the rows of both snapshots."""

    def __init__(self, folder: Path, before: Manifest, after: Manifest, limit: int) -> None:
        self.folder, self.manifests, self.limit = folder, (before, after), limit

    def documents(self) -> Sides:
        before, after = self.manifests
        if before.tables["documents"] == after.tables["documents"]:
            return {}
        was, is_there = self._versions(before), self._versions(after)
        return {key: (key in was, key in is_there) for key in was | is_there if was.get(key) != is_there.get(key)}

    def changes(self, table: TableName, sides: Sides) -> Changes:
        first = sorted(sides)[: self.limit]
        was, is_there = (
            self._rows(table, manifest, [key for key in first if sides[key][side]])
            for side, manifest in enumerate(self.manifests)
        )
        kinds = list(sides.values())
        return Changes(
            came=kinds.count((False, True)),
            went=kinds.count((True, False)),
            changed=kinds.count((True, True)),
            rows=[_change(table, key, was.get(key), is_there.get(key)) for key in first],
        )

    def _versions(self, manifest: Manifest) -> dict[Key, Any]:
        """Of every living document what tells its versions apart."""
        rows = self._dataset("documents", manifest).to_table(["key", "version", "accepted_at"], filter="NOT deleted")
        keys, *told = (rows[name].to_pylist() for name in ("key", "version", "accepted_at"))
        return dict(zip(keys, zip(*told, strict=True), strict=True))

    def _rows(self, table: TableName, manifest: Manifest, keys: Sequence[Key]) -> dict[Key, Any]:
        if not keys:
            return {}
        return {row["key"]: row for row in read_rows(self._dataset(table, manifest), keys, ["key", *_SHOWN[table]])}

    def _dataset(self, table: TableName, manifest: Manifest) -> Any:
        return open_dataset(self.folder / "tables", table, manifest.tables[table])


def _change(table: TableName, key: Key, was: Any, is_there: Any) -> Change:
    row, shown = is_there or was, _SHOWN[table][0]
    return Change(
        id=row["id"] if table == "documents" else key.hex(),
        document=row.get("document"),
        before=None if was is None else was[shown],
        after=None if is_there is None else is_there[shown],
    )
