"""How far a namespace has got with the log, as its files tell it."""

from __future__ import annotations

from index.home import Home
from index.manifest import Manifests

from .log import SOURCE


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
    numbers = manifests.numbers()
    return manifests.read(numbers[-1]).positions.get(SOURCE, 0) if numbers else 0
