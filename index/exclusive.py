"""Files that come into being whole, under a name that only one of many can take."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def create(path: Path, content: bytes) -> bool:
    """Make a file; False where its name is taken, by whomever. It is complete and on the disk before it has its name,
    so nobody ever sees half of it. That the name survives a power loss is for `sync` of its folder.
    """
    draft = path.with_name(f".{uuid4().hex}")
    try:
        with open(draft, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def sync(path: str | Path) -> None:
    """Bring a file's content, or the names in a folder, onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
