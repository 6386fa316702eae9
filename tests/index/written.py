"""A namespace under test: documents of one passage each, written by the real writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from index import compare
from index.compare import State
from index.keys import passage_key
from index.manifest import Fingerprint, Manifest
from index.models.hashing import HashingEmbedder
from index.plan import Changes, Embed
from index.types import Document, Extraction, Passage, Triple
from index.writer import Writer


class AliasHashing(HashingEmbedder):
    """Hashing that claims to know aliases, so that alias edges take part."""

    alias_threshold = 0.5


EMBEDDER = AliasHashing(16)
MADE = Fingerprint(
    chunker="one passage",
    extractor="given",
    embedder=EMBEDDER.fingerprint,
    dimensions=EMBEDDER.dimensions,
    alias_threshold=EMBEDDER.alias_threshold,
)

METADATA = '{"session":"s"}'
"""Every document is a turn of one conversation, in the order of their ids."""

Facts = Sequence[tuple[str, str, str]]
"""What a document says; its text is made of them."""


class Written:
    """Puts and deletes documents; `documents` and `passages` are what must be in the index then, by document."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._at: dict[int, tuple[dict[str, Document], dict[str, Passage]]] = {0: ({}, {})}

    @classmethod
    def create(cls, folder: Path, embed: Embed = EMBEDDER.embed, made: Fingerprint = MADE) -> Self:
        folder.mkdir(parents=True, exist_ok=True)
        return cls(Writer.create(folder, made, embed))

    @property
    def folder(self) -> Path:
        return self.writer.folder

    @property
    def position(self) -> int:
        return self.writer.manifest.positions.get("log", 0)

    @property
    def documents(self) -> dict[str, Document]:
        return self._at[self.position][0]

    @property
    def passages(self) -> dict[str, Passage]:
        return self._at[self.position][1]

    def changes(self, put: Mapping[str, Facts], gone: Sequence[str] = ()) -> Changes:
        stamp = self.position + 1
        rows = [Document(id, stamp, True, "", "", "{}", None, stamp, ()) for id in gone]
        added = []
        for id, facts in put.items():
            text = " ".join(f"{' '.join(fact)}." for fact in facts)
            extraction = Extraction(triples=tuple(Triple(*fact) for fact in facts))
            about = facts[0][0] if facts else ""
            passage = Passage(passage_key("small", id, text, 0), id, "", text, METADATA, None, extraction, about)
            rows.append(Document(id, stamp, False, "", text, METADATA, None, stamp, (passage.key,)))
            added.append(passage)
        touched = [row.id for row in rows]
        return Changes(
            documents=rows,
            replaced=[self.documents[id] for id in touched if id in self.documents],
            removed=[self.passages[id] for id in touched if id in self.passages],
            added=added,
        )

    def commit(self, put: Mapping[str, Facts], gone: Sequence[str] = ()) -> Manifest:
        changes = self.changes(put, gone)
        stamp = self.position + 1
        documents = self.documents | {row.id: row for row in changes.documents}
        kept = {id: passage for id, passage in self.passages.items() if id not in put and id not in gone}
        self._at[stamp] = documents, kept | {passage.document: passage for passage in changes.added}
        return self.writer.commit(changes, {"log": stamp}, stamp)

    def reopen(self, embed: Embed = EMBEDDER.embed) -> None:
        """Another writer, as after a crash: the former one is not closed, and its last commits may be lost."""
        self.writer = Writer.open(self.folder, self.writer.manifest.fingerprint, embed, take_over=True)

    def check(self, other: Callable[[], Path]) -> None:
        """Fail unless the newest snapshot is what one commit of what is left gives in the empty folder `other()`."""
        clean = Written.create(other(), made=self.writer.manifest.fingerprint)
        rows = list(self.documents.values())
        clean.writer.commit(Changes(documents=rows, added=list(self.passages.values())), {"log": 1}, 1)
        found = list(compare.differences(self.state(), clean.state()))
        assert not found, "\n".join(map(str, found[:10]))

    def state(self) -> State:
        return compare.newest_state(self.folder)
