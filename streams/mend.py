"""Passages that the extractor could not read well are read again later, and replaced where it can by then."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from index.errors import NotFound, SnapshotGone, Torn
from index.home import Home
from index.manifest import Manifests
from index.plan import Changes
from index.tables import open_dataset
from index.types import Key
from index.writer import Writer

from .apply import Understand
from .extract.base import PaidExtractor
from .pipeline import Pipeline

AT_ONCE = 64
"""Passages read again in one go, between two batches of events."""


class Degraded:
    """Finds degraded passages in all namespaces that a pipeline made: some at a time, all of them once an interval."""

    def __init__(self, home: Home, pipeline: Pipeline, seconds: float, owns: Callable[[str], bool]) -> None:
        """`seconds` between two looks at the same namespace; only those are looked at that the caller `owns`.

        Only what reads for money has anything degraded.
        """
        self._home = home
        self._pipeline = pipeline
        self._seconds = seconds
        self._owns = owns
        self._names: deque[str] = deque()
        self._keys: deque[tuple[str, Sequence[Key]]] = deque()
        self._next = time.monotonic() + seconds if isinstance(pipeline.extractor, PaidExtractor) else math.inf

    def next(self) -> tuple[str, Sequence[Key]] | None:
        """A namespace and keys of degraded passages in it; None where there is nothing to do. Looks at one namespace.

        They may be gone by now.
        """
        if not self._keys and not self._names and time.monotonic() >= self._next:
            self._names.extend(filter(self._owns, self._home.names()))
            self._next = time.monotonic() + self._seconds
        if not self._keys and self._names:
            name = self._names.popleft()
            # One that was deleted meanwhile, or is damaged, has nothing to read: whoever writes it tells.
            with suppress(NotFound, SnapshotGone, Torn):
                keys = self._of(name)
                self._keys.extend((name, keys[start : start + AT_ONCE]) for start in range(0, len(keys), AT_ONCE))
        return self._keys.popleft() if self._keys else None

    def _of(self, name: str) -> list[Key]:
        folder = self._home.incarnation(name)
        manifest = Manifests(folder / "manifests").newest()
        if manifest.fingerprint != self._pipeline.fingerprint or not manifest.counts.passages:
            return []
        dataset: Any = open_dataset(folder / "tables", "passages", manifest.tables["passages"])
        return sorted(dataset.to_table(columns=["key"], filter="degraded")["key"].to_pylist())


def mend(writer: Writer, keys: Sequence[Key], understand: Understand) -> int:
    """Read these passages again and commit those that are understood now; returns how many.

    The events that the index reflects stay the same: its positions and its watermark do not move. Raises what the
    writer and `understand` raise.
    """
    rows = [row for row in writer.passages(keys).values() if row.extraction.degraded]
    read = understand([(row.title, row.text) for row in rows])
    mended = [(row, extraction) for row, extraction in zip(rows, read, strict=True) if not extraction.degraded]
    if mended:
        added = [replace(row, extraction=extraction) for row, extraction in mended]
        writer.commit(Changes(removed=[row for row, _ in mended], added=added), {}, writer.manifest.watermark)
    return len(mended)
