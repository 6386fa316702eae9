"""Tests of opening namespaces: how they are made is remembered, and what was paid for is never paid again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from index.errors import WriterBusy, WrongFingerprint
from index.home import Home
from index.models.hashing import HashingEmbedder
from index.types import Accepted, DocumentEvent
from streams.apply import apply
from streams.chunk import WHOLE
from streams.pipeline import Opened, Pipeline, open_namespace, open_successor

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
    opened = open_namespace(home, "notes", small_pipeline())
    put(opened, "Ada Moor met Bo.", 1)
    assert not list((opened.writer.folder / "tables").glob("understanding*"))
    opened.writer.close()


def test_nobody_sees_a_successor(home: Home) -> None:
    open_namespace(home, "notes", small_pipeline()).writer.close()
    living = home.incarnation("notes")
    successor = open_successor(home, "notes", small_pipeline(), {"log": 3})
    assert home.incarnation("notes") == living != successor.writer.folder
    assert successor.writer.manifest.positions == {"log": 3}
    successor.writer.close()
