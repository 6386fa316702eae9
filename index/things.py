"""Which entities and facts live after a change, and how they are spelled: decided by votes, so retractable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from .delta import Delta
from .graph.incidence import Incidence
from .graph.segment import Relation
from .types import Entity, Fact, Key

Row = TypeVar("Row", Entity, Fact)
Votes = Mapping[Key, Mapping[str, int]]
"""Per entity or fact: spelling -> number of passages that write it so."""


@dataclass(frozen=True, slots=True)
class RowChange(Generic[Row]):
    """Rows of one table that go and rows that come; a thing whose spelling changes is in both."""

    gone: Sequence[Row]
    come: Sequence[Row]


def spelling(votes: Mapping[str, int]) -> str | None:
    """The spelling in most passages, ties to the smallest string (CogitoRAG D5); None where no passage is left."""
    alive = [(-count, surface) for surface, count in votes.items() if count > 0]
    return min(alive)[1] if alive else None


def votes(incidences: Iterable[Incidence]) -> dict[Key, dict[str, int]]:
    """Sum the entries of the relation SPELLINGS."""
    result: dict[Key, dict[str, int]] = defaultdict(dict)
    for incidence in incidences:
        texts = incidence.text.to_pylist()
        for thing, surface, weight in zip(incidence.rows(), texts, incidence.weight.tolist(), strict=True):
            counted = result[thing]
            counted[surface] = counted.get(surface, 0) + weight
    return result


def changes(delta: Delta, before: Votes) -> tuple[RowChange[Entity], RowChange[Fact]]:
    """Births, deaths and respellings among the things that `delta` touches.

    `before` are the votes of the state that the delta is added to.
    """
    cast = votes([delta.so_far(Relation.SPELLINGS)])
    entities: tuple[list[Entity], list[Entity]] = ([], [])
    facts: tuple[list[Fact], list[Fact]] = ([], [])
    for thing, difference in cast.items():
        old = before.get(thing, {})
        new = dict(old)
        for surface, count in difference.items():
            new[surface] = new.get(surface, 0) + count
        was, shall = spelling(old), spelling(new)
        if was == shall:
            continue
        for which, shown in enumerate((was, shall)):
            if shown is None:
                continue
            if fact := delta.facts.get(thing):
                facts[which].append(fact if fact.surface == shown else replace(fact, surface=shown))
            else:
                entities[which].append(Entity(thing, delta.entities[thing].norm, shown))
    return RowChange(*entities), RowChange(*facts)
