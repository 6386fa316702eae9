"""How documents become an index: chunker, extractor and embedder, and namespaces opened with them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import StoreError, WriterBusy
from index.home import Home
from index.manifest import Fingerprint
from index.models.base import Embedder
from index.plan import Embed
from index.understanding import ANSWERS, TABLE, Understanding
from index.writer import Synced, Writer

from .apply import Understand
from .chunk import ChunkConfig
from .extract.base import Extractor, PaidExtractor
from .understand import Reading

UNFINISHED = "unfinished"
"""File in the folder of a successor that a rebuild has begun; the next rebuild goes on with it after a crash."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Everything that decides what an index of given documents looks like."""

    chunker: ChunkConfig
    extractor: Extractor
    embedder: Embedder
    alias_edges: bool = True
    """Keep alias edges where the embedder declares a threshold; their cost grows with the number of entities."""
    sentences: bool = True
    """Keep sentences with their vectors, which the mode `fused` reads."""

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(
            chunker=self.chunker.fingerprint,
            extractor=self.extractor.fingerprint,
            embedder=self.embedder.fingerprint,
            dimensions=self.embedder.dimensions,
            alias_threshold=self.embedder.alias_threshold if self.alias_edges else None,
            sentences=self.sentences,
        )


@dataclass(frozen=True, slots=True)
class Opened:
    """A namespace open for writing, with the way its passages are understood."""

    writer: Writer
    understand: Understand
    reading: Reading | None = None
    """Where passages are read by a paid extractor: `understand` as one that can also be begun early."""

    def release(self) -> None:
        """Let go of the lock and of what was begun; what is not durable yet is still in the log."""
        if self.reading is not None:
            self.reading.call_off()
        self.writer.release()

    def close(self) -> None:
        """Keep the answers that are still to come, make everything durable, and let go of the lock."""
        if self.reading is not None:
            self.reading.close()
        self.writer.close()


def open_namespace(
    home: Home, name: str, pipeline: Pipeline, *, take_over: bool = False, synced: Synced | None = None
) -> Opened:
    """Open a namespace for writing; one that does not exist, or was deleted, starts empty.

    `synced` is what a former writer of the living incarnation left on the disk. Raises what Writer.open raises; another
    process that creates it at the same moment wins with a StoreError here.
    """
    pointer = home.pointer(name)
    if pointer is not None and not pointer.deleted:
        folder = home.incarnation(name)
        embed, understand, reading = _understood(folder, pipeline)
        writer = Writer.open(folder, pipeline.fingerprint, embed, take_over=take_over, synced=synced)
        return Opened(writer, understand, reading)
    folder = home.fresh(name)
    embed, understand, reading = _understood(folder, pipeline)
    outlived = {} if pointer is None else pointer.positions
    writer = Writer.create(folder, pipeline.fingerprint, embed, positions=outlived)
    # The pointer is durable at once, so what it points to must be as well.
    writer.checkpoint()
    home.point(name, folder, positions=outlived)
    return Opened(writer, understand, reading)


def reopen_successor(home: Home, name: str, pipeline: Pipeline) -> Opened | None:
    """An incarnation that a rebuild with this pipeline marked UNFINISHED and left, or None.

    Whatever the documents were when it began: applying them as they are now makes it what they are now.
    """
    for folder in home.unnamed(name):
        if (folder / UNFINISHED).exists():
            embed, understand, reading = _understood(folder, pipeline)
            # One that is damaged, made otherwise or held by another process is of no use to this rebuild.
            with suppress(StoreError, WriterBusy):
                return Opened(Writer.open(folder, pipeline.fingerprint, embed), understand, reading)
    return None


def open_successor(home: Home, name: str, pipeline: Pipeline, positions: Mapping[str, int]) -> Opened:
    """A new incarnation of a namespace, empty and not yet visible, that knows what the living one paid for."""
    living, folder = home.incarnation(name) / "tables", home.fresh(name)
    try:
        # The answers first: they move into the table.
        if (living / ANSWERS).exists():
            (folder / "tables").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(living / ANSWERS, folder / "tables" / ANSWERS)
        for table in living.glob(f"{TABLE}*.lance"):
            shutil.copytree(table, folder / "tables" / table.name)
        embed, understand, reading = _understood(folder, pipeline)
        return Opened(Writer.create(folder, pipeline.fingerprint, embed, positions=positions), understand, reading)
    except BaseException:
        # Whoever tries again must not fill the disk with what came of it.
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _understood(folder: Path, pipeline: Pipeline) -> tuple[Embed, Understand, Reading | None]:
    """Embedding and reading, by way of the table `understanding` where the model is slow or paid."""
    extractor, embedder = pipeline.extractor, pipeline.embedder

    @cache
    def known() -> Understanding:
        # Not before the writer has the namespace: opening the table may repair it.
        return Understanding(folder / "tables", embedder.dimensions)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return known().vectors(texts, embedder)

    reading = Reading(known, extractor) if isinstance(extractor, PaidExtractor) else None
    return embed if embedder.remote else embedder.embed, reading or extractor.extract, reading
