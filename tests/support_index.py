"""A small namespace, written by the real writer and read by the real reader, for tests that ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from index.keys import passage_key
from index.manifest import Fingerprint
from index.models.base import Embedder
from index.models.hashing import HashingEmbedder
from index.plan import Changes
from index.reader import Reader
from index.snapshot import PLAIN_WEIGHTS, EdgeWeights, Snapshot
from index.types import Document, Extraction, Passage, Triple
from index.writer import Writer


def a_passage(
    id: str,
    text: str,
    triples: Iterable[Sequence[str]] = (),
    *,
    title: str = "",
    memory: str = "",
    metadata: str = "{}",
    event_time: int | None = None,
    about: str = "",
) -> Passage:
    """The only passage of document `id`."""
    read = Extraction(memory, (), tuple(Triple(*triple) for triple in triples))
    return Passage(passage_key("reference", id, text, 0), id, title, text, metadata, event_time, read, about)


class SmallIndex:
    """A namespace of documents with one passage each; every `change` is one commit.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SmallIndex(Path(folder)) as index:
    ...     index.change([a_passage("d1", "Red Dunes is a film.")]).manifest.counts.passages
    1
    """

    def __init__(
        self,
        folder: Path,
        embedder: Embedder | None = None,
        *,
        alias_threshold: float | None = None,
        alias_same_digits: bool = True,
        weights: EdgeWeights = PLAIN_WEIGHTS,
        sentences: bool = True,
    ) -> None:
        self.embedder = HashingEmbedder(64) if embedder is None else embedder
        made = Fingerprint(
            chunker="one",
            extractor="given",
            embedder=self.embedder.fingerprint,
            dimensions=self.embedder.dimensions,
            alias_threshold=alias_threshold,
            alias_same_digits=alias_same_digits,
            sentences=sentences,
        )
        self.folder = folder
        self._writer = Writer.create(folder, made, self.embedder.embed)
        self._reader = Reader(folder, weights)
        self._documents: dict[str, Document] = {}
        self.passages: dict[str, Passage] = {}
        """What must be in the index now, by document."""

    @property
    def snapshot(self) -> Snapshot:
        return self._reader.refresh()

    def change(self, put: Sequence[Passage] = (), gone: Sequence[str] = ()) -> Snapshot:
        """Delete documents, then give others their new passage; returns the snapshot after the commit."""
        stamp = self._writer.manifest.watermark + 1
        touched = [*gone, *(passage.document for passage in put)]
        rows = [Document(id, stamp, True, "", "", "{}", None, stamp, ()) for id in gone]
        rows += [
            Document(p.document, stamp, False, p.title, p.text, p.metadata, p.event_time, stamp, (p.key,)) for p in put
        ]
        changes = Changes(
            documents=rows,
            replaced=[self._documents[id] for id in touched if id in self._documents],
            removed=[self.passages.pop(id) for id in touched if id in self.passages],
            added=put,
        )
        self._writer.commit(changes, {"log": stamp}, stamp)
        self._documents.update((row.id, row) for row in rows)
        self.passages.update((passage.document, passage) for passage in put)
        return self.snapshot

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
