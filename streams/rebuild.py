"""A namespace made anew from its documents: to make it otherwise, or to check that history left no trace."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from index import maintenance, records
from index.clock import from_microseconds
from index.compare import Difference, differences, newest_state, state
from index.home import Home
from index.lock import WriterLock
from index.maintenance import Retention
from index.manifest import Manifest, Manifests
from index.tables import open_dataset
from index.types import Accepted, Document, DocumentEvent

from .apply import apply
from .extract.base import PaidExtractor
from .extract.unbought import Unbought
from .log import SOURCE
from .pipeline import Opened, Pipeline, open_successor

BATCH = 256

ONLY_THE_NEWEST = Retention(reach=timedelta(0), every=timedelta(0))

Progress = Callable[[int, int], None]
"""Documents done, documents in all."""


def _silent(done: int, total: int) -> None:
    pass


def rebuild(home: Home, name: str, pipeline: Pipeline, progress: Progress = _silent) -> Manifest:
    """Make `name` anew with `pipeline` and put it in the place of the former index, at the same position of the log.

    The former index answers until then. Raises WriterBusy while a process writes the namespace.
    """
    folder = home.incarnation(name)
    lock = WriterLock(folder / "writer.lock")
    lock.acquire(take_over=False)
    try:
        former = Manifests(folder / "manifests").newest()
        opened = open_successor(home, name, pipeline, former.positions)
        try:
            replay(opened, name, folder, former, pipeline, progress)
            # Nobody may ask for the half of a namespace that each step on the way was.
            maintenance.clean(opened.writer, ONLY_THE_NEWEST)
        finally:
            # Closing makes it durable, as what a pointer names must be.
            opened.writer.close()
        home.point(name, opened.writer.folder)
        return opened.writer.manifest
    finally:
        lock.release()


def verify(home: Home, name: str, pipeline: Pipeline, progress: Progress = _silent) -> Iterator[Difference]:
    """Every difference between a namespace and a clean rebuild from the same understanding; none is the promise.

    Nothing is changed, nobody is held up, and no model is paid: what is not known is read by the extractor's fallback,
    as it was in the index. Raises WrongFingerprint where `pipeline` is not what made the index.
    """
    folder = home.incarnation(name)
    manifest = Manifests(folder / "manifests").newest()
    manifest.require(pipeline.fingerprint, folder)
    if isinstance(pipeline.extractor, PaidExtractor):
        pipeline = replace(pipeline, extractor=Unbought(pipeline.extractor))
    opened = open_successor(home, name, pipeline, manifest.positions)
    try:
        replay(opened, name, folder, manifest, pipeline, progress)
        yield from differences(state(folder, manifest), newest_state(opened.writer.folder))
    finally:
        opened.writer.close()
        shutil.rmtree(opened.writer.folder)


def replay(opened: Opened, name: str, folder: Path, manifest: Manifest, pipeline: Pipeline, progress: Progress) -> None:
    """Apply every document row of a snapshot, tombstones included, to a new index."""
    dataset: Any = open_dataset(folder / "tables", "documents", manifest.tables["documents"])
    done, total = 0, dataset.count_rows()
    position = manifest.positions.get(SOURCE, 0)
    for rows in dataset.to_batches(batch_size=BATCH):
        batch = [_event(name, records.document(row), position) for row in rows.to_pylist()]
        if batch:
            apply(opened.writer, name, batch, pipeline.chunker, opened.understand)
            maintenance.merge(opened.writer)
        done += len(batch)
        progress(done, total)


def _event(namespace: str, row: Document, position: int) -> Accepted:
    event = DocumentEvent(
        op="delete" if row.deleted else "upsert",
        namespace=namespace,
        id=row.id,
        version=row.version,
        title=row.title,
        text=row.text,
        metadata=json.loads(row.metadata),
        event_time=None if row.event_time is None else from_microseconds(row.event_time),
    )
    return Accepted(position, row.accepted_at, event)
