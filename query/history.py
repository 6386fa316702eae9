"""Older snapshots for questions about the past: opened when asked for, few at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path

from index.errors import NotFound, SnapshotGone
from index.history import When, find
from index.home import Home
from index.manifest import Manifest, Manifests
from index.metrics import Metrics
from index.reader import Reader
from index.snapshot import Snapshot

from .readers import Readers

CAPACITY = 8
"""Older snapshots held in the process. Each shares vectors and numbers with the newest one of its namespace, and holds
some 40 bytes of its own for every number ever given, and what has changed since.
"""


class History:
    """Snapshots of the past by number or moment. Any number of threads may ask."""

    def __init__(self, readers: Readers, metrics: Metrics, *, capacity: int = CAPACITY) -> None:
        self._readers = readers
        self._metrics = metrics
        self._capacity = capacity
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[Path, int], Future[Snapshot]] = OrderedDict()
        """One that is still being opened is a future that is not done: whoever else needs it waits for it."""

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def snapshot(self, name: str, when: When | None) -> Snapshot:
        """The snapshot of a namespace that `when` names; None is the newest, as Readers holds it.

        Raises SnapshotGone for one beyond the retention or of an index that was replaced, NotFound for one that never
        was and where there is no such namespace, StoreError where its files are damaged.
        """
        if when is None:
            return self._readers.snapshot(name)
        outcome = "unknown"
        try:
            reader = self._readers.renewed(name)
            # Also for one that is held: it can be asked for as long as its manifest stands, and no longer.
            manifest = manifest_of(self._readers.home, name, reader.folder, when)
            outcome, snapshot = self._open(reader, manifest)
            return snapshot
        except SnapshotGone:
            outcome = "gone"
            raise
        finally:
            self._metrics.count("gistream_as_of_total", outcome=outcome)

    def _open(self, reader: Reader, manifest: Manifest) -> tuple[str, Snapshot]:
        newest = reader.snapshot
        if newest.manifest == manifest:
            return "held", newest
        place = (reader.folder, manifest.number)
        mine: Future[Snapshot] = Future()
        with self._lock:
            held = self._held.setdefault(place, mine)
            self._held.move_to_end(place)
            while len(self._held) > self._capacity:
                self._held.popitem(last=False)
        if held is not mine:
            return "held", held.result()
        try:
            with self._metrics.timed("gistream_older_snapshot_open_seconds"):
                mine.set_result(reader.older(manifest))
        except BaseException as error:
            with self._lock:
                self._held.pop(place, None)
            mine.set_exception(error)
        return "opened", mine.result()


def manifest_of(home: Home, name: str, folder: Path, when: When) -> Manifest:
    """The manifest that `when` names in the living incarnation of a namespace, which is in `folder`. Raises as
    History.snapshot does.
    """
    try:
        return find(Manifests(folder / "manifests"), when)
    except (NotFound, SnapshotGone) as error:
        since = home.remade(name)
        if since is None:
            raise
        # Numbers start over, so one that is not there yet may have been there before.
        before = when < since if isinstance(when, datetime) else when > 0 and isinstance(error, NotFound)
        if not before:
            raise
        made = f"namespace {name} was made anew at {since:%Y-%m-%d %H:%M:%S} UTC, and its former index is gone"
        raise SnapshotGone(f"{error.message}: {made}", hint=error.hint) from error
