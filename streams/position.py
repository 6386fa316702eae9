"""How far a namespace has got with the log, as its files tell it."""

from __future__ import annotations

from index.errors import NotFound, Torn
from index.home import Home
from index.manifest import Manifests

from .log import SOURCE, Log


def reached(home: Home, name: str) -> int:
    """Position up to which a namespace's newest snapshot or its tombstone accounts for events; 0 without either.

    Raises Torn where its newest manifest or pointer is damaged.
    """
    pointer = home.pointer(name)
    if pointer is None:
        return 0
    if pointer.deleted:
        return pointer.positions.get(SOURCE, 0)
    manifests = Manifests(home.incarnation(name) / "manifests")
    try:
        return manifests.newest().positions.get(SOURCE, 0)
    except NotFound:
        return 0


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
