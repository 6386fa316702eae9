"""How documents become an index: chunker, extractor and embedder, and namespaces opened with them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from index.errors import NotFound, StoreError, WriterBusy
from index.home import Home
from index.manifest import Fingerprint
from index.models.base import Embedder
from index.plan import Embed
from index.understanding import Understanding, inherit
from index.writer import Synced, Writer

from .apply import Understand
from .chunk import ChunkConfig
from .extract.base import Extractor, PaidExtractor
from .understand import Reading, Understood

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

    @property
    def keeps(self) -> bool:
        """Whether what its models say is kept: the extractor is paid, or the embedder remote."""
        return self.embedder.remote or isinstance(self.extractor, PaidExtractor)


@dataclass(frozen=True, slots=True)
class Opened:
    """A namespace open for writing, with the way its passages are understood."""

    writer: Writer
    understand: Understand
    understood: Understood

    @property
    def reading(self) -> Reading | None:
        """Where passages are read by a paid extractor: `understand` as one that can also be begun early."""
        return self.understood.reading

    def release(self) -> None:
        """Let go of the lock and of what was begun; what is not durable yet is still in the log."""
        self.understood.release()
        self.writer.release()

    def close(self) -> None:
        """Keep the answers that are still to come, make everything durable, and let go of the lock."""
        try:
            self.understood.close()
        finally:
            self.writer.close()


def understanding_of(home: Home, name: str, pipeline: Pipeline) -> Understood:
    """How the texts of a namespace are understood, without a writer: any process may, before it exists as well.

    What it reads and embeds, whoever commits the namespace finds known. Where nothing is kept (see Pipeline.keeps) it
    has neither a reading nor an embed. Nothing is opened before a text needs it, but what an older index kept within
    the living incarnation is moved. Close it. Raises NotFound for what is no name.
    """
    folder = home.understanding(name)
    with suppress(NotFound):
        # Also where this pipeline keeps nothing: a rebuild sweeps the incarnation away.
        inherit(folder, home.incarnation(name) / "tables")
    return Understood(partial(Understanding, folder), pipeline.extractor, pipeline.embedder)


def open_namespace(
    home: Home, name: str, pipeline: Pipeline, *, take_over: bool = False, synced: Synced | None = None
) -> Opened:
    """Open a namespace for writing; one that does not exist, or was deleted, starts empty.

    `synced` is what this process left on the disk when it last wrote the living incarnation. Raises what Writer.open
    raises; another process that created it since we looked wins with a StoreError here.
    """
    latest, pointer = home.latest(name), home.pointer(name)
    if pointer is not None and not pointer.deleted:
        folder = home.incarnation(name)
        open_writer = partial(Writer.open, folder, pipeline.fingerprint, take_over=take_over, synced=synced)
        return _opened(home, name, pipeline, open_writer)
    folder = home.fresh(name)
    outlived = {} if pointer is None else pointer.positions
    opened = _opened(home, name, pipeline, partial(Writer.create, folder, pipeline.fingerprint, positions=outlived))
    try:
        # The pointer is durable at once, so what it points to must be as well.
        opened.writer.checkpoint()
        home.point(name, folder, after=latest, positions=outlived)
    except BaseException:
        opened.release()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return opened


def reopen_successor(home: Home, name: str, pipeline: Pipeline) -> Opened | None:
    """An incarnation that a rebuild with this pipeline marked UNFINISHED and left, or None.

    Whatever the documents were when it began: applying them as they are now makes it what they are now.
    """
    for folder in home.unnamed(name):
        if (folder / UNFINISHED).exists():
            # One that is damaged, made otherwise or held by another process is of no use to this rebuild.
            with suppress(StoreError, WriterBusy):
                return _opened(home, name, pipeline, partial(Writer.open, folder, pipeline.fingerprint))
    return None


def open_successor(home: Home, name: str, pipeline: Pipeline, positions: Mapping[str, int]) -> Opened:
    """A new incarnation of a namespace, empty and not yet visible; it shares what the living one paid for."""
    folder = home.fresh(name)
    try:
        create = partial(Writer.create, folder, pipeline.fingerprint, positions=positions)
        return _opened(home, name, pipeline, create)
    except BaseException:
        # Whoever tries again must not fill the disk with what came of it.
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _opened(home: Home, name: str, pipeline: Pipeline, open_writer: Callable[[Embed], Writer]) -> Opened:
    understood = understanding_of(home, name, pipeline)
    writer = open_writer(understood.embed or pipeline.embedder.embed)
    return Opened(writer, understood.reading or pipeline.extractor.extract, understood)
