"""A namespace made anew while its former index answers: document by document into a successor that then takes over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from index import maintenance, records
from index.clock import from_microseconds
from index.errors import StoreError
from index.home import Home
from index.lock import WriterLock
from index.maintenance import Retention
from index.manifest import Manifest, Manifests
from index.tables import open_dataset
from index.types import Accepted, Document, DocumentEvent

from .pipeline import UNFINISHED, Opened, Pipeline, open_successor, reopen_successor

BATCH = 256
_NEWEST = Retention(reach=timedelta(0), every=timedelta(0))

Apply = Callable[[Sequence[Accepted]], object]
"""Commits events to the new index; what it raises leaves them to be applied again."""


class Replay:
    """Every document row of a snapshot, tombstones included, as the events that made them, batch by batch."""

    def __init__(self, name: str, folder: Path, manifest: Manifest, batch: int = BATCH) -> None:
        """`folder` and `manifest` are those of the snapshot of namespace `name`; `batch` documents are read at once."""
        self._name = name
        dataset: Any = open_dataset(folder / "tables", "documents", manifest.tables["documents"])
        self._batches: Iterator[Any] = iter(dataset.to_batches(batch_size=batch))
        self._waiting: list[Accepted] = []
        self.done = 0
        """Documents that were applied."""
        self.total: int = dataset.count_rows()

    def step(self, apply: Apply) -> bool:
        """Apply the next batch; False if none was left. After an error the same batch is next."""
        if not self._waiting:
            rows = next(self._batches, None)
            if rows is None:
                return False
            self._waiting = [self._event(records.document(row)) for row in rows.to_pylist()]
        if self._waiting:
            apply(self._waiting)
        self.done += len(self._waiting)
        self._waiting = []
        return True

    def _event(self, row: Document) -> Accepted:
        event = DocumentEvent(
            op="delete" if row.deleted else "upsert",
            namespace=self._name,
            id=row.id,
            version=row.version,
            title=row.title,
            text=row.text,
            metadata=json.loads(row.metadata),
            event_time=None if row.event_time is None else from_microseconds(row.event_time),
        )
        # It moves no position: the successor begins at those of the snapshot.
        return Accepted(0, row.accepted_at, event)


class Renewal:
    """One namespace on its way to a successor, at the position of the log that the former index has.

    It holds the write lock of the former index, so that no event is lost between the two: events that come meanwhile
    wait in the log, and are applied to the successor. What is left when it is closed before `finish`, or killed, the
    next renewal with the same pipeline goes on with: nothing is paid for twice.
    """

    def __init__(self, home: Home, name: str, pipeline: Pipeline, batch: int = BATCH) -> None:
        """Raises WriterBusy while somebody writes the namespace, NotFound where there is none, and StoreError."""
        self._home = home
        self._name = name
        self._latest, self._former = home.latest(name), home.incarnation(name)
        # Whatever was written meanwhile, the successor would lack: nobody may, whatever partition it was assigned.
        self._lock = WriterLock(self._former / "writer.lock", firm=True)
        self._lock.acquire(take_over=False)
        try:
            manifest = Manifests(self._former / "manifests").newest()
            self._replayed = manifest.number
            self.replay = Replay(name, self._former, manifest, batch)
            self.opened = reopen_successor(home, name, pipeline) or _begun(home, name, pipeline, manifest)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def finish(self) -> Manifest:
        """Put the successor in the place of the former index, once `replay` has no more to apply.

        Raises NotFound where the namespace was deleted meanwhile, StoreError where somebody else made it anew or wrote
        it.
        """
        if self._home.incarnation(self._name) != self._former:
            hint = "stop the other process, or give it the same settings"
            raise StoreError(
                f"namespace {self._name} was replaced by another process while it was made anew", hint=hint
            )
        if Manifests(self._former / "manifests").newest().number != self._replayed:
            # By one that had passed by the lock of a writer before us.
            hint = "nothing is lost; make it anew again"
            raise StoreError(f"namespace {self._name} was written while it was made anew", hint=hint)
        successor = self.opened.writer
        # Its earlier snapshots lack documents: nobody must find them.
        maintenance.clean(successor, _NEWEST)
        # What a pointer names must be durable.
        successor.checkpoint()
        self._home.point(self._name, successor.folder, after=self._latest)
        (successor.folder / UNFINISHED).unlink(missing_ok=True)
        return successor.manifest

    def close(self) -> None:
        """Let go of both as they are: what is not whole on the disk, the next renewal makes again."""
        try:
            # Answers that are still to come are paid for.
            self.opened.understood.close()
        finally:
            self.opened.release()
            self._lock.release()


def _begun(home: Home, name: str, pipeline: Pipeline, former: Manifest) -> Opened:
    opened = open_successor(home, name, pipeline, former.positions)
    (opened.writer.folder / UNFINISHED).touch()
    return opened
