"""Where namespaces live: one folder per incarnation, and a numbered chain of pointers that says which one counts."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from .errors import NotFound, StoreError, Torn, WriterBusy
from .exclusive import create, sync
from .lock import OPEN_LOCK, WriterLock, alone
from .types import NAMESPACE_PATTERN, NamespaceName

GRACE_SECONDS = 60.0
"""Longer than any question takes: so long a former incarnation can still be read."""

POINTERS = "pointers"
UNDERSTANDING = "understanding"

_NAMESPACE = TypeAdapter(NamespaceName)


class Pointer(BaseModel):
    """Names the living incarnation of a namespace, or says that it was deleted and which events it outlived."""

    model_config = ConfigDict(frozen=True)

    incarnation: str
    deleted: bool = False
    positions: Mapping[str, int] = {}
    """Events of the log up to here belong to incarnations before this one and must not be applied again."""


class Home:
    """The data folder; in namespaces/NAME/ are pointers/N.json, understanding/, and a folder for each incarnation."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._namespaces = data / "namespaces"

    def names(self) -> list[str]:
        """Namespaces that exist, sorted; deleted ones are not among them."""
        pointers = ((name, self.pointer(name)) for name in self.known())
        return [name for name, pointer in pointers if pointer is not None and not pointer.deleted]

    def known(self) -> list[str]:
        """Namespaces that are or were, sorted; one of which there is only an understanding is not among them."""
        if not self._namespaces.exists():
            return []
        found = filter(NAMESPACE_PATTERN.fullmatch, os.listdir(self._namespaces))
        return sorted(name for name in found if (self._namespaces / name / POINTERS).exists())

    def pointer(self, name: str) -> Pointer | None:
        """The newest pointer, None for a namespace that never was."""
        folder = self._folder(name) / POINTERS
        numbers = _numbers(folder)
        if not numbers:
            return None
        path = folder / f"{numbers[-1]}.json"
        try:
            return Pointer.model_validate_json(path.read_bytes())
        except ValidationError:
            raise Torn(
                f"pointer {path} of namespace {name} is damaged", hint="restore the file from a backup"
            ) from None

    def incarnation(self, name: str) -> Path:
        """Folder of the living incarnation. Raises NotFound where there is none."""
        pointer = self.pointer(name)
        if pointer is None or pointer.deleted:
            raise NotFound(f"there is no namespace {name}", hint="the first document sent to it creates it")
        return self._folder(name) / pointer.incarnation

    def understanding(self, name: str) -> Path:
        """Folder of what models said about the texts of a namespace; it may be there before the namespace is."""
        return self._folder(name) / UNDERSTANDING

    def remade(self, name: str) -> datetime | None:
        """When the living incarnation took the place of a former one; None for the first. Numbers of snapshots start
        over with it.
        """
        if len(_numbers(self._folder(name) / POINTERS)) < 2:
            return None
        return datetime.fromtimestamp(self._pointed(name), UTC)

    def fresh(self, name: str) -> Path:
        """A new empty incarnation that nobody sees until `point` names it."""
        folder = self._folder(name) / uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def latest(self, name: str) -> int:
        """Number of the newest pointer, 0 for a namespace that never was."""
        return max(_numbers(self._folder(name) / POINTERS), default=0)

    def point(self, name: str, incarnation: Path, *, after: int, positions: Mapping[str, int] | None = None) -> None:
        """Make an incarnation the living one, atomically, where the pointer `after` is still the newest.

        Raises StoreError where another process was quicker: what it made stays.
        """
        self._append(name, after, Pointer(incarnation=incarnation.name, positions=positions or {}))

    def unnamed(self, name: str) -> list[Path]:
        """Folders of incarnations that are not the living one: former ones, and successors that are being made."""
        pointer = self.pointer(name)
        living = None if pointer is None or pointer.deleted else pointer.incarnation
        return [
            folder for folder in self._folder(name).iterdir() if folder.name not in (POINTERS, UNDERSTANDING, living)
        ]

    def sweep(self, name: str, grace: float = GRACE_SECONDS) -> int:
        """Remove the incarnations that nothing names and nobody writes, and return how many they were.

        A former incarnation stays for `grace` seconds after its successor took over: readers may still be asking it. Of
        a deleted namespace the understanding goes as well.
        """
        pointer = self.pointer(name)
        if pointer is None or time.time() - self._pointed(name) < grace:
            return 0
        if pointer.deleted:
            self._forget(name)
        gone = 0
        for folder in self.unnamed(name):
            if time.time() - folder.stat().st_mtime >= grace and _abandoned(folder):
                shutil.rmtree(folder)
                gone += 1
        return gone

    def bury(self, name: str, positions: Mapping[str, int]) -> None:
        """Delete a namespace, with all that models said about its texts: the tombstone keeps its positions, so old
        events cannot bring it back.
        """
        after, incarnation = self.latest(name), self.incarnation(name)
        self._append(name, after, Pointer(incarnation=incarnation.name, deleted=True, positions=positions))
        shutil.rmtree(incarnation)
        self.sweep(name, grace=0)

    def _forget(self, name: str) -> None:
        """Remove the understanding of a deleted namespace; those who have it open begin a new one."""
        folder = self.understanding(name)
        if not folder.exists():
            return
        with alone(folder / OPEN_LOCK):
            # In one step, so that nobody opens one that is half gone; what a crash leaves of it is swept.
            gone = folder.rename(folder.with_name(uuid4().hex))
        shutil.rmtree(gone)

    def _pointed(self, name: str) -> float:
        """When the newest pointer was made, in seconds since 1970."""
        return max(path.stat().st_mtime for path in (self._folder(name) / POINTERS).glob("*.json"))

    def _append(self, name: str, after: int, pointer: Pointer) -> None:
        folder = self._folder(name) / POINTERS
        folder.mkdir(parents=True, exist_ok=True)
        if not create(folder / f"{after + 1}.json", pointer.model_dump_json().encode()):
            raise StoreError(f"namespace {name} was changed by another process at the same moment", hint="try again")
        sync(folder)

    def _folder(self, name: str) -> Path:
        try:
            return self._namespaces / _NAMESPACE.validate_python(name)
        except ValidationError as error:
            raise NotFound(f"{name!r} is no namespace: {error.errors()[0]['msg']}") from None


def _abandoned(folder: Path) -> bool:
    """Whether no process holds the write lock of an incarnation: one that is being made is not abandoned."""
    lock = WriterLock(folder / "writer.lock")
    try:
        lock.acquire(take_over=False)
    except WriterBusy:
        return False
    lock.release()
    return True


def _numbers(folder: Path) -> list[int]:
    if not folder.exists():
        return []
    return sorted(int(entry[:-5]) for entry in os.listdir(folder) if entry.endswith(".json") and entry[:-5].isdigit())
