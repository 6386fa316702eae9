"""A namespace made anew from its documents: to make it otherwise, or to check that history left no trace."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from index import maintenance
from index.compare import Difference, differences, newest_state, state
from index.home import Home
from index.manifest import Manifest, Manifests
from index.types import Accepted

from .apply import apply
from .extract.base import PaidExtractor
from .extract.unbought import Unbought
from .pipeline import Opened, Pipeline, open_successor
from .renewal import Renewal, Replay

Progress = Callable[[int, int], None]
"""Documents done, documents in all."""


def _silent(done: int, total: int) -> None:
    pass


def rebuild(home: Home, name: str, pipeline: Pipeline, progress: Progress = _silent) -> Manifest:
    """Make `name` anew with `pipeline` and put it in the place of the former index, at the same position of the log.

    The former index answers until then. Raises WriterBusy while a process writes the namespace.
    """
    with Renewal(home, name, pipeline) as renewal:
        _apply_all(renewal.opened, name, renewal.replay, pipeline, progress)
        return renewal.finish()


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
        opened.close()
        shutil.rmtree(opened.writer.folder)


def replay(opened: Opened, name: str, folder: Path, manifest: Manifest, pipeline: Pipeline, progress: Progress) -> None:
    """Apply every document row of a snapshot, tombstones included, to another index."""
    _apply_all(opened, name, Replay(name, folder, manifest), pipeline, progress)


def _apply_all(opened: Opened, name: str, documents: Replay, pipeline: Pipeline, progress: Progress) -> None:
    def commit(batch: Sequence[Accepted]) -> None:
        apply(opened.writer, name, batch, pipeline.chunker, opened.understand)
        maintenance.merge(opened.writer)

    while documents.step(commit):
        progress(documents.done, documents.total)
