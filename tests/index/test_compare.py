"""Tests of comparing indexes: every difference is found and shown, and files and histories are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from index import compare, maintenance, records
from index.compare import Difference, differences
from index.manifest import Counts

from .written import Facts, Written

ADA = {"a": [("Ada", "met", "Bo")]}
BO = {"b": [("bo", "left", "Pier 9")]}


def test_the_same_documents_are_the_same_state_whatever_the_files(tmp_path: Path) -> None:
    written = Written.create(tmp_path / "live")
    written.commit(BO | {"a": [("Ada", "left", "Bo")]})
    written.commit(ADA)
    written.commit({"c": []})
    maintenance.merge(written.writer, fan=2)
    maintenance.compact(written.writer)
    written.check(lambda: tmp_path / "clean")


@pytest.mark.parametrize(
    ("change", "places"),
    [
        ({"a": [("Ada", "met", "Bo"), ("Ada", "met", "Cy")]}, {"facts", "mentions entries", "graph degrees", "counts"}),
        ({"a": [("ADA", "met", "Bo")]}, {"spellings entries", "entities entries", "facts", "entities"}),
        ({"b": []}, {"documents", "counts", "passages entries"}),
    ],
)
def test_every_place_that_differs_is_named(tmp_path: Path, change: dict[str, Facts], places: set[str]) -> None:
    written = Written.create(tmp_path)
    written.commit(ADA)
    before = written.state()
    written.commit(change)
    after = written.state()
    forth, back = list(differences(before, after)), list(differences(after, before))
    assert places <= {difference.where for difference in forth}
    assert forth == [Difference(d.where, d.key, d.right, d.left) for d in back]
    assert not list(differences(after, written.state()))


def test_a_row_that_is_there_twice_is_a_difference(tmp_path: Path) -> None:
    written = Written.create(tmp_path)
    written.commit(ADA)
    once, tables = written.state(), written.writer.tables
    tables.add("documents", records.documents(list(written.documents.values()), tables.schemas["documents"]))
    manifest = written.writer.manifest.model_copy(update={"tables": dict(tables.versions)})
    [found] = differences(once, compare.state(tmp_path, manifest))
    assert (found.where, found.key) == ("documents that are there twice", records.document_key("a").hex())


def test_a_difference_is_printed_as_a_line_a_side() -> None:
    both = Difference("facts", "00", {"surface": "a", "vector": [0.0, 1.0]}, {"surface": "b", "vector": None})
    assert str(both).splitlines() == [
        "- facts 00 {'surface': 'a', 'vector': '(2 numbers)'}",
        "+ facts 00 {'surface': 'b', 'vector': None}",
    ]
    assert str(Difference("terms entries", "00 01", None, 3)) == "+ terms entries 00 01 3"
    assert len(str(Difference("documents", "00", {"text": "x" * 10_000}, None))) < 400


def test_an_empty_namespace_has_a_state(tmp_path: Path) -> None:
    state = Written.create(tmp_path).state()
    assert state["counts"] == Counts().model_dump()
    assert not any(held for place, held in state.items() if place != "counts")
