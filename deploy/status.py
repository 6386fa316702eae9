"""What a data folder holds: sizes and newest snapshot of every namespace, and the number of dead letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from index.home import Home
from index.manifest import Manifests
from streams.dead_letters import DeadLetters
from streams.log import Log


def status(data: Path) -> dict[str, Any]:
    """{"namespaces": {NAME: {documents, passages, entities, facts, snapshot}}, "dead_letters": n}; makes no file that is not there."""
    home = Home(data)
    found = {}
    for name in home.names():
        manifest = Manifests(home.incarnation(name) / "manifests").newest()
        found[name] = {**manifest.counts.model_dump(), "snapshot": manifest.number}
    return {"namespaces": found, "dead_letters": _dead_letters(data / "log.db")}


def _dead_letters(path: Path) -> int:
    if not path.exists():
        return 0
    with Log(path) as log:
        return DeadLetters(log).count()
