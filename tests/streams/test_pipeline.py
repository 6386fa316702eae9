"""Tests of opening namespaces: how they are made is remembered, and what was paid for is never paid again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from index.errors import StoreError, WriterBusy, WrongFingerprint
from index.home import Home
from index.models.hashing import HashingEmbedder
from index.naming import about_document
from index.plan import texts_of
from index.types import Accepted, DocumentEvent, Passage, Role
from streams.apply import apply
from streams.chunk import WHOLE, keyed
from streams.pipeline import Opened, Pipeline, open_namespace, open_successor, understanding_of
from streams.rebuild import rebuild, verify

from .stubs import SMALL, NotingExtractor, PaidNoting, small_pipeline


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def put(opened: Opened, text: str, position: int, id: str = "d") -> None:
    event = DocumentEvent(op="upsert" if text else "delete", namespace="notes", id=id, text=text)
    apply(opened.writer, "notes", [Accepted(position, position, event, {"log": position})], SMALL, opened.understand)


class Knowing(HashingEmbedder):
    alias_threshold = 0.8


def test_everything_that_decides_an_index_is_in_its_fingerprint() -> None:
    one = small_pipeline()
    other = NotingExtractor()
    other.fingerprint = "another"
    variants = [
        one,
        replace(one, chunker=WHOLE),
        replace(one, extractor=other),
        replace(one, embedder=HashingEmbedder(17)),
        replace(one, embedder=Knowing(16)),
    ]
    assert len({variant.fingerprint for variant in variants}) == len(variants)


def test_alias_edges_are_kept_where_the_embedder_knows_them_and_they_are_wanted() -> None:
    knowing = replace(small_pipeline(), embedder=Knowing(16))
    assert knowing.fingerprint.alias_threshold == 0.8
    assert replace(knowing, alias_edges=False).fingerprint.alias_threshold is None
    assert small_pipeline().fingerprint.alias_threshold is None


def test_a_namespace_is_born_at_its_first_opening_and_found_at_the_next(home: Home) -> None:
    opened = open_namespace(home, "notes", small_pipeline())
    assert home.names() == ["notes"] and opened.writer.folder == home.incarnation("notes")
    put(opened, "Ada Moor met Bo.", 1)
    with pytest.raises(WriterBusy):
        open_namespace(home, "notes", small_pipeline())
    opened.writer.close()
    again = open_namespace(home, "notes", small_pipeline())
    assert again.writer.manifest.positions == {"log": 1}
    assert again.writer.manifest.epoch == opened.writer.manifest.epoch + 1
    again.writer.close()
    with pytest.raises(WrongFingerprint, match="chunker"):
        open_namespace(home, "notes", replace(small_pipeline(), chunker=WHOLE))


def test_a_deleted_namespace_is_born_again_empty_behind_what_it_outlived(home: Home) -> None:
    opened = open_namespace(home, "notes", small_pipeline())
    put(opened, "Ada Moor met Bo.", 1)
    opened.writer.close()
    home.bury("notes", {"log": 9})
    again = open_namespace(home, "notes", replace(small_pipeline(), chunker=WHOLE))
    assert again.writer.manifest.positions == {"log": 9}
    assert again.writer.manifest.counts.documents == 0
    again.writer.close()


class Remote(HashingEmbedder):
    remote = True


def paid(extractor: NotingExtractor) -> Pipeline:
    return replace(small_pipeline(extractor), embedder=Remote(16))


@pytest.mark.parametrize("deleted", [False, True], ids=["new", "deleted-before"])
def test_whoever_is_late_to_create_a_namespace_replaces_nothing(home: Home, deleted: bool) -> None:
    """A process was stopped while it created one, and another has filled it since."""
    pipeline = small_pipeline()
    if deleted:
        open_namespace(home, "notes", pipeline).close()
        home.bury("notes", {"log": 1})
    event = DocumentEvent(namespace="notes", id="a", text="Ada Moor met Bo Larsen.")

    class Stopped(Home):
        def fresh(self, name: str) -> Path:
            found = super().fresh(name)
            other = open_namespace(home, name, pipeline)
            apply(other.writer, name, [Accepted(2, 2, event, {"log": 2})], SMALL, other.understand)
            other.close()
            return found

    with pytest.raises(StoreError, match="another process"):
        open_namespace(Stopped(home.data), "notes", pipeline)
    opened = open_namespace(home, "notes", pipeline)
    assert opened.writer.manifest.positions == {"log": 2}
    assert not home.unnamed("notes")
    opened.close()


def test_what_was_paid_for_is_not_read_again(home: Home) -> None:
    """Not when a document comes back, not in another document, not after a restart, and not in a rebuild."""
    extractor = PaidNoting()
    opened = open_namespace(home, "notes", paid(extractor))
    put(opened, "Ada Moor met Bo.", 1)
    put(opened, "", 2)
    put(opened, "Ada Moor met Bo.", 3)
    opened.writer.close()
    opened = open_namespace(home, "notes", paid(extractor))
    put(opened, "Ada Moor met Bo.", 4, id="twin")
    opened.writer.close()
    successor = open_successor(home, "notes", paid(extractor), {})
    put(successor, "Ada Moor met Bo.", 1)
    assert extractor.read == ["Ada Moor met Bo."]
    assert successor.writer.manifest.counts.facts == 1
    successor.writer.close()


def test_what_costs_nothing_is_not_kept(home: Home) -> None:
    assert not small_pipeline().keeps
    understood = understanding_of(home, "notes", small_pipeline())
    assert understood.reading is None and understood.embed is None
    understood.close()
    opened = open_namespace(home, "notes", small_pipeline())
    put(opened, "Ada Moor met Bo.", 1)
    opened.close()
    assert not home.understanding("notes").exists()


class Noting(HashingEmbedder):
    """A remote embedder with aliases that notes what it is asked."""

    remote = True
    alias_threshold = 0.8

    def __init__(self) -> None:
        super().__init__(16)
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        self.asked += texts
        return super().embed(texts, role)


def test_what_is_understood_in_advance_is_known_when_it_is_committed(home: Home) -> None:
    """In another process, as it were, and before the namespace exists."""
    extractor, embedder = PaidNoting(), Noting()
    pipeline = replace(small_pipeline(extractor), embedder=embedder)
    assert pipeline.keeps
    texts = [f"Ada Moor met Bo Larsen at Pier {number}. ADA MOOR met Bo Larsen." for number in range(4)]
    ahead = understanding_of(home, "notes", pipeline)
    assert ahead.reading is not None and ahead.embed is not None
    for text in texts:
        pieces = keyed("notes", text, text, SMALL)
        read = ahead.reading([("", piece) for _, piece in pieces])
        about = about_document("", text, "{}")
        passages = [
            Passage(key, text, "", piece, "{}", None, extraction, about)
            for (key, piece), extraction in zip(pieces, read, strict=True)
        ]
        ahead.embed(texts_of(passages, pipeline.fingerprint))
    assert home.known() == []
    asked, extractor.read = embedder.asked, []
    embedder.asked = []
    assert len(asked) == len(set(asked)) > 10

    opened = open_namespace(home, "notes", pipeline)
    for position, text in enumerate(texts, 1):
        put(opened, text, position, id=text)
    assert opened.writer.manifest.counts.facts > 1
    put(opened, "", 9, id=texts[0])
    opened.close()
    assert not extractor.read and not embedder.asked
    assert not list(verify(home, "notes", pipeline))
    ahead.close()


def test_what_is_deleted_meanwhile_is_begun_anew(home: Home) -> None:
    extractor = PaidNoting()
    opened = open_namespace(home, "notes", paid(extractor))
    put(opened, "Ada Moor met Bo.", 1)
    ahead = understanding_of(home, "notes", paid(extractor))
    assert ahead.reading is not None and ahead.embed is not None
    for _ in range(2):
        ahead.reading([("", "Ada Moor met Bo.")])
        ahead.embed(["Ada Moor met Bo."])
    assert len(extractor.read) == 1
    opened.close()
    home.bury("notes", {"log": 1})
    assert not home.understanding("notes").exists()
    for _ in range(2):
        ahead.reading([("", "Ada Moor met Bo.")])
        ahead.embed(["Ada Moor met Bo."])
    assert len(extractor.read) == 2
    ahead.close()


@pytest.mark.parametrize("first", ["the writer", "a reader", "a rebuild that keeps nothing"])
def test_what_an_older_index_kept_in_itself_is_found(home: Home, first: str) -> None:
    extractor = PaidNoting()
    opened = open_namespace(home, "notes", paid(extractor))
    put(opened, "Ada Moor met Bo.", 1)
    opened.close()
    shared, tables = home.understanding("notes"), home.incarnation("notes") / "tables"
    for table in shared.glob("*.lance"):
        table.rename(tables / table.name)
    shutil.rmtree(shared)

    if first == "the writer":
        open_namespace(home, "notes", paid(extractor)).close()
    elif first == "a reader":
        understanding_of(home, "notes", paid(extractor)).close()
    else:
        rebuild(home, "notes", small_pipeline())
        home.sweep("notes", grace=0)
        rebuild(home, "notes", paid(extractor))
    assert sorted(path.name for path in shared.glob("*.lance")) == ["understanding-16.lance", "understanding.lance"]
    opened = open_namespace(home, "notes", paid(extractor))
    put(opened, "Ada Moor met Bo.", 2, id="twin")
    opened.close()
    assert extractor.read == ["Ada Moor met Bo."]


def test_nobody_sees_a_successor(home: Home) -> None:
    open_namespace(home, "notes", small_pipeline()).writer.close()
    living = home.incarnation("notes")
    successor = open_successor(home, "notes", small_pipeline(), {"log": 3})
    assert home.incarnation("notes") == living != successor.writer.folder
    assert successor.writer.manifest.positions == {"log": 3}
    successor.writer.close()
