"""How far a namespace has got with a log, as its files tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from index.errors import NotFound, Torn
from index.home import Home
from index.manifest import Manifests
from index.types import Accepted

from .log import SOURCE, Log

NOTHING: Final = -1
"""Before every position of every source."""


def reflected(batch: Sequence[Accepted], before: Mapping[str, int]) -> dict[str, int]:
    """The positions of a snapshot that reflects this batch too; none of them moves back."""
    found: dict[str, int] = {}
    for accepted in batch:
        for source, position in accepted.places.items():
            found[source] = max(position, found.get(source, before.get(source, NOTHING)))
    return found


def positions(home: Home, name: str) -> Mapping[str, int]:
    """By source the position up to which a namespace's newest snapshot or its tombstone accounts for events.

    Raises Torn where its newest manifest or pointer is damaged.
    """
    pointer = home.pointer(name)
    if pointer is None:
        return {}
    if pointer.deleted:
        return pointer.positions
    try:
        return Manifests(home.incarnation(name) / "manifests").newest().positions
    except NotFound:
        return {}


def reached(home: Home, name: str, source: str = SOURCE) -> int:
    """The position of one source, or NOTHING. Raises as `positions` does."""
    return positions(home, name).get(source, NOTHING)


def align(log: Log, home: Home) -> None:
    """Let the log count on from behind every namespace.

    Events of a log that was lost and begun anew would otherwise be taken for those that are in the snapshots already.
    """
    for name in home.known():
        try:
            log.reserve(reached(home, name))
        except Torn:
            # Whoever opens it goes back to an older snapshot, which has got less far.
            continue
