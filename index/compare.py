"""What is in an index, by key, and where two indexes differ: the measure behind "incremental equals rebuild"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .graph.incidence import Incidence
from .graph.segment import Relation, Segment, read_segment, total
from .manifest import Manifest, Manifests
from .records import TABLES
from .tables import open_dataset

State = Mapping[str, Mapping[str, Any]]
"""Table or relation -> key in hexadecimal (two for an entry) -> row or weight.

Dense numbers and file layouts are not in it.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One row or entry that two states do not have in common; None where a state has none."""

    where: str
    key: str
    left: Any
    right: Any

    def __str__(self) -> str:
        return "\n".join(
            f"{sign} {self.where} {self.key} {_short(side)}"
            for sign, side in (("-", self.left), ("+", self.right))
            if side is not None
        )


def newest_state(folder: Path) -> State:
    """Everything the newest manifest of a namespace folder names."""
    return state(folder, Manifests(folder / "manifests").newest())


def state(folder: Path, manifest: Manifest) -> State:
    """Every row of every table, and every entry and row sum of every relation, of one snapshot."""
    found: dict[str, Mapping[str, Any]] = {}
    for table in TABLES:
        rows = open_dataset(folder / "tables", table, manifest.tables[table]).to_table().to_pylist()
        keys = [row["key"].hex() for row in rows]
        if len(set(keys)) < len(keys):
            twice = sorted(key for key in set(keys) if keys.count(key) > 1)
            found[f"{table} that are there twice"] = dict.fromkeys(twice, True)
        found[table] = dict(zip(keys, map(_plain, rows), strict=True))
    segment = total(read_segment(folder / "segments", file) for file in manifest.segments)
    for relation in Relation:
        found[f"{relation.name.lower()} entries"] = _entries(segment[relation])
        found[f"{relation.name.lower()} row sums"] = _row_sums(segment[relation])
    found["graph degrees"] = _degrees(segment)
    found["counts"] = manifest.counts.model_dump()
    return found


def differences(left: State, right: State) -> Iterator[Difference]:
    """Everything that is in one state and not, or not so, in the other; by place, then key."""
    for where in sorted({*left, *right}):
        ours, theirs = left.get(where, {}), right.get(where, {})
        for key in sorted({*ours, *theirs}):
            if ours.get(key) != theirs.get(key):
                yield Difference(where, key, ours.get(key), theirs.get(key))


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items() if name != "key"}


def _entries(incidence: Incidence) -> dict[str, Any]:
    pairs = zip(incidence.rows(), incidence.cols(), incidence.weight.tolist(), incidence.text.to_pylist(), strict=True)
    return {f"{row.hex()} {col.hex()}": weight if text is None else (weight, text) for row, col, weight, text in pairs}


def _row_sums(incidence: Incidence) -> dict[str, int]:
    sums: dict[str, int] = {}
    for row, weight in zip(incidence.rows(), incidence.weight.tolist(), strict=True):
        sums[row.hex()] = sums.get(row.hex(), 0) + weight
    return sums


def _degrees(segment: Segment) -> dict[str, int]:
    """Weighted degree of every node in the graph that diffusion walks on, in 1/10,000 (link 2, mention 1, alias 2)."""
    degrees: dict[str, int] = {}
    scales = ((Relation.MENTIONS, 10_000, True), (Relation.LINKS, 20_000, True), (Relation.ALIASES, 2, False))
    for relation, scale, both in scales:
        incidence = segment[relation]
        for row, col, weight in zip(incidence.rows(), incidence.cols(), incidence.weight.tolist(), strict=True):
            for node in (row, col) if both else (row,):
                degrees[node.hex()] = degrees.get(node.hex(), 0) + scale * weight
    return degrees


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        value = {
            name: f"({len(part)} numbers)" if name == "vector" and part is not None else part
            for name, part in value.items()
        }
    shown = repr(value)
    return shown if len(shown) <= 300 else f"{shown[:300]}…"
