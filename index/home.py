"""Where namespaces live: one folder per incarnation, and a numbered chain of pointers that says which one counts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from .errors import NotFound, StoreError, Torn
from .types import NAMESPACE_PATTERN, NamespaceName

_NAMESPACE = TypeAdapter(NamespaceName)


class Pointer(BaseModel):
    """Names the living incarnation of a namespace, or says that it was deleted and which events it outlived."""

    model_config = ConfigDict(frozen=True)

    incarnation: str
    deleted: bool = False
    positions: Mapping[str, int] = {}
    """Events of the log up to here belong to incarnations before this one and must not be applied again."""


class Home:
    """The data folder: below namespaces/NAME/ are pointers/N.json and a folder for each incarnation."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._namespaces = data / "namespaces"

    def names(self) -> list[str]:
        """Namespaces that exist, sorted; deleted ones are not among them."""
        if not self._namespaces.exists():
            return []
        named = filter(NAMESPACE_PATTERN.fullmatch, sorted(os.listdir(self._namespaces)))
        pointers = ((name, self.pointer(name)) for name in named)
        return [name for name, pointer in pointers if pointer is not None and not pointer.deleted]

    def pointer(self, name: str) -> Pointer | None:
        """The newest pointer, None for a namespace that never was."""
        folder = self._folder(name) / "pointers"
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

    def fresh(self, name: str) -> Path:
        """A new empty incarnation that nobody sees until `point` names it."""
        folder = self._folder(name) / uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def point(self, name: str, incarnation: Path, *, positions: Mapping[str, int] | None = None) -> None:
        """Make an incarnation the living one, atomically."""
        self._append(name, Pointer(incarnation=incarnation.name, positions=positions or {}))

    def bury(self, name: str, positions: Mapping[str, int]) -> None:
        """Delete a namespace: the tombstone keeps its positions, so old events cannot bring it back."""
        incarnation = self.incarnation(name)
        self._append(name, Pointer(incarnation=incarnation.name, deleted=True, positions=positions))
        shutil.rmtree(incarnation)

    def _append(self, name: str, pointer: Pointer) -> None:
        folder = self._folder(name) / "pointers"
        folder.mkdir(parents=True, exist_ok=True)
        number = max(_numbers(folder), default=0) + 1
        draft = folder / f".{uuid4().hex}"
        with open(draft, "xb") as file:
            file.write(pointer.model_dump_json().encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, folder / f"{number}.json")
        except FileExistsError:
            raise StoreError(
                f"namespace {name} was changed by another process at the same moment", hint="try again"
            ) from None
        finally:
            draft.unlink()
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _folder(self, name: str) -> Path:
        try:
            return self._namespaces / _NAMESPACE.validate_python(name)
        except ValidationError as error:
            raise NotFound(f"{name!r} is no namespace: {error.errors()[0]['msg']}") from None


def _numbers(folder: Path) -> list[int]:
    if not folder.exists():
        return []
    return sorted(int(entry[:-5]) for entry in os.listdir(folder) if entry.endswith(".json") and entry[:-5].isdigit())
