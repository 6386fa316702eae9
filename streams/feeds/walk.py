"""What lies in a folder, without reading any of it: the files of each folder by name, then its folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Walk:
    """Everything below `root` that is visible, by its place: the path below `root` with `/`."""

    files: dict[str, Path] = field(default_factory=dict)
    """Files of the suffixes asked for, and links that are called so."""
    closed: dict[str, str] = field(default_factory=dict)
    """Folders that could not be listed ("" is `root`), with the reason: what is in them is unknown, and not gone."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many other files there are, by suffix."""

    def may_hold(self, place: str) -> bool:
        """Whether a file at `place`, which was not found, may be there all the same."""
        return any(not folder or place.startswith(f"{folder}/") for folder in self.closed)


def walk(root: Path, suffixes: Collection[str]) -> Walk:
    """Look through `root`. Hidden files and folders are passed over; links to folders are not followed, so that no
    walk is endless.
    """
    found = Walk()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                visible = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda e: e.name)
            folders = [Path(entry.path) for entry in visible if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            found.closed[place_of(folder, root)] = error.strerror or str(error)
            continue
        waiting.extend(reversed(folders))
        for entry in visible:
            path = Path(entry.path)
            if path.is_dir():
                continue
            if path.suffix.lower() in suffixes:
                found.files[place_of(path, root)] = path
            else:
                found.skipped[path.suffix.lower() or "no suffix"] += 1
    return found


def place_of(path: Path, root: Path) -> str:
    """`path` below `root` with `/`, "" for `root` itself; bytes that are no UTF-8 show as escapes."""
    place = path.relative_to(root).as_posix()
    # Python reads such bytes as surrogates, which neither a table nor a terminal takes.
    return "" if place == "." else place.encode(errors="surrogateescape").decode(errors="backslashreplace")
