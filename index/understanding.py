"""The folder `understanding`: what models said about a text, kept so that it is never bought twice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import TypeAdapter

from .answers import SUFFIX, Answers
from .errors import StoreError
from .kept import Kept
from .keys import key
from .lock import OPEN_LOCK, alone, stands
from .models.base import Embedder
from .recovery import sync_since
from .types import Extraction

TABLE = "understanding"
"""Holds extractions; vectors of length d are in a table of that name and -d, so both outlive a change of models."""
ANSWERS = "answers"
"""Folder of the newest extractions."""
SYNC_SECONDS = 5.0
"""Between two times that what was added is brought onto the disk."""

_EXTRACTION = TypeAdapter(Extraction)
_FORMER_ANSWERS = f"{TABLE}.answers"
_Found = TypeVar("_Found")


class Understanding:
    """Append-only and content-addressed rows, each an extraction or a vector; the newest extractions in a file first.

    Any number of processes use a namespace's understanding at once, whether or not the namespace exists yet. No
    manifest pins it: a row is true whenever it is found. Duplicates are harmless. It holds only what follows from one
    text, so it survives edits, deletes and rebuilds; deleted texts stay in it until the namespace is deleted. Then
    whoever holds it open begins a new one at the next use.

    One thread uses it; only `keep` may be called from any. A power loss takes at most the last seconds, which are
    bought again.
    """

    def __init__(self, folder: Path) -> None:
        """Opens it, makes it where it is missing, and takes over the answers of processes that are no more.

        Raises OSError where the folder cannot be used.
        """
        self._folder = folder
        self._open_lock = folder / OPEN_LOCK
        self._tables: dict[str, Kept] = {}
        self._lock: int | None = None
        self._synced = time.time()
        self._answers = self._opened()

    def vectors(self, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
        """Vectors (n, d) of texts; only those not known yet are embedded, once each, in one call.

        Raises StoreError, and what the embedder raises.
        """
        keys = [key("text", embedder.fingerprint, text) for text in texts]
        known = self._with_vectors(embedder, lambda table: table.find(keys))
        unknown = {k: text for k, text in zip(keys, texts, strict=True) if k not in known}
        if unknown:
            fresh = embedder.embed(list(unknown.values()))
            values = pa.FixedSizeListArray.from_arrays(pa.array(fresh.reshape(-1)), embedder.dimensions)
            self._with_vectors(embedder, lambda table: table.add(list(unknown), values))
            self._look_after(_vectors_table(embedder))
            known.update(zip(unknown, fresh, strict=True))
        return np.array([known[k] for k in keys], np.float32).reshape(len(keys), embedder.dimensions)

    def said(self, passages: Sequence[tuple[str, str]], extractor: str) -> list[Extraction | None]:
        """What the extractor of that fingerprint said about each (title, text); None where it was never asked.

        Raises StoreError.
        """
        keys = [key("extraction", extractor, title, text) for title, text in passages]
        known = self._with_extractions(lambda table: table.find(keys)) | self._answers.find(keys)
        return [_EXTRACTION.validate_json(known[k]) if k in known else None for k in keys]

    def keep(self, passage: tuple[str, str], extractor: str, extraction: Extraction) -> None:
        """Keep what an extractor just said about a (title, text), whatever becomes of this process. Safe for threads.

        Raises OSError where it cannot be written.
        """
        self._answers.add(key("extraction", extractor, *passage), _EXTRACTION.dump_json(extraction).decode())

    def gather(self) -> None:
        """Bring what was kept since the last time into the table, all at once: it likes few large pieces.

        Other processes find it from then on. Raises StoreError.
        """
        pages = self._answers.turn()
        kept = {address: answer for page in pages for address, answer in page.answers.items()}
        if kept:
            values = pa.array(list(kept.values()), pa.large_string())
            self._with_extractions(lambda table: table.add(list(kept), values))
        self._answers.done(pages)
        if kept:
            self._look_after(TABLE)

    def close(self) -> None:
        """Bring everything into the tables and onto the disk, and let go. Raises StoreError and OSError."""
        try:
            self.gather()
            sync_since(self._folder, self._synced)
        finally:
            self.release()

    def release(self) -> None:
        """Let go of it as it is: what waits in files, whoever opens it next takes over."""
        self._answers.close()
        self._tables.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _opened(self) -> Answers:
        with alone(self._open_lock):
            self._lock = os.open(self._open_lock, os.O_RDONLY)
            try:
                return Answers(self._folder / ANSWERS)
            except BaseException:
                os.close(self._lock)
                self._lock = None
                raise

    def _stands(self) -> bool:
        """Whether the folder is still the one that was opened: its namespace was not deleted."""
        return self._lock is not None and stands(self._open_lock, self._lock)

    def _with_extractions(self, use: Callable[[Kept], _Found]) -> _Found:
        return self._with(TABLE, "extraction", pa.large_string(), use)

    def _with_vectors(self, embedder: Embedder, use: Callable[[Kept], _Found]) -> _Found:
        values = pa.list_(pa.float32(), embedder.dimensions)
        return self._with(_vectors_table(embedder), "vector", values, use)

    def _with(self, name: str, column: str, values: pa.DataType, use: Callable[[Kept], _Found]) -> _Found:
        """What `use` finds in a table; where the namespace is deleted meanwhile, in the table of a new folder."""
        try:
            return use(self._table(name, column, values))
        except StoreError:
            if self._stands():
                raise
        return use(self._table(name, column, values))

    def _table(self, name: str, column: str, values: pa.DataType) -> Kept:
        if not self._stands():
            self.release()
            self._answers = self._opened()
        if name not in self._tables:
            with alone(self._open_lock):
                self._tables[name] = Kept(self._folder, name, column, values)
        return self._tables[name]

    def _look_after(self, name: str) -> None:
        """Compact a table that was added to where that is due, and sync from time to time."""
        table = self._tables.get(name)
        if table is not None and table.due:
            with alone(self._open_lock, wait=False) as mine:
                # Otherwise somebody else is doing it.
                if mine:
                    table.compact()
        if (moment := time.time()) >= self._synced + SYNC_SECONDS:
            sync_since(self._folder, self._synced)
            self._synced = moment


def inherit(folder: Path, tables: Path) -> None:
    """Move here what an older index kept among its own `tables`; what is in `folder` already stays."""
    moving = [*tables.glob(f"{TABLE}*.lance"), *tables.glob(_FORMER_ANSWERS)]
    if not moving:
        return
    with alone(folder / OPEN_LOCK):
        (folder / ANSWERS).mkdir(exist_ok=True)
        for path in moving:
            place = folder / (path.name if path.suffix == ".lance" else f"{ANSWERS}/{uuid4().hex}{SUFFIX}")
            # Another process may have moved it in the meantime.
            if path.exists() and not place.exists():
                path.rename(place)


def _vectors_table(embedder: Embedder) -> str:
    return f"{TABLE}-{embedder.dimensions}"
