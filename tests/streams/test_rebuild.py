"""Tests of rebuilding: the same documents, made otherwise, in one step; and a check that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from index.errors import ModelUnavailable, NotFound, WriterBusy, WrongFingerprint
from index.home import Home
from index.plan import Changes
from index.reader import Reader
from index.types import DocumentEvent
from streams.chunk import WHOLE
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline, open_namespace
from streams.rebuild import rebuild, verify

from .stubs import NotingExtractor, small_pipeline

TEXT = " ".join(f"Ada Moor met Bo Larsen at Pier {number}." for number in range(8))
PIPELINE = small_pipeline()
OTHER = replace(PIPELINE, chunker=WHOLE)


def event(id: str, version: int, text: str = TEXT) -> DocumentEvent:
    moment = datetime(1931, 4, 1, tzinfo=UTC)
    return DocumentEvent(
        op="upsert" if text else "delete", namespace="notes", id=id, version=version, title="Piers", text=text,
        metadata={"shelf": version}, event_time=moment,
    )  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log.db") as log:
        yield log


@pytest.fixture
def home(tmp_path: Path, log: Log) -> Home:
    """Two documents, one of them edited, and a tombstone."""
    home = Home(tmp_path)
    log.append([event("a", 1), event("b", 1), event("c", 4, "")])
    drain(home, log)
    log.append([event("b", 2, TEXT.replace("Pier 3", "Dock 3"))])
    drain(home, log)
    return home


def drain(home: Home, log: Log, pipeline: Pipeline = PIPELINE) -> None:
    with Runner(home, log, pipeline) as runner:
        runner.drain()


def folders(home: Home) -> set[str]:
    return {path.name for path in (home.data / "namespaces" / "notes").iterdir()}


def test_a_rebuild_takes_the_place_in_one_step_at_the_same_position(home: Home, log: Log) -> None:
    before = Reader(home.incarnation("notes")).snapshot
    rows = before.documents_by_id([*"abc"])
    done: list[tuple[int, int]] = []
    manifest = rebuild(home, "notes", OTHER, lambda so_far, of: done.append((so_far, of)))
    after = Reader(home.incarnation("notes")).snapshot
    assert after.manifest == manifest
    assert (manifest.fingerprint, manifest.positions) == (OTHER.fingerprint, before.manifest.positions)
    assert manifest.counts.documents == manifest.counts.passages == 2
    for id, row in after.documents_by_id([*"abc"]).items():
        assert replace(row, passages=()) == replace(rows[id], passages=())
    assert done[-1] == (3, 3)
    assert len(before.passage_rows(before.live_passages.tolist())) > 2, "readers of the former one go on"

    log.append([event("c", 3, "An older version, too late."), event("d", 1)])
    drain(home, log, OTHER)
    rows = Reader(home.incarnation("notes")).snapshot.documents_by_id([*"cd"])
    assert rows["c"].deleted and not rows["d"].deleted
    assert not list(verify(home, "notes", OTHER))


def test_nothing_is_rebuilt_under_a_writer(home: Home) -> None:
    opened = open_namespace(home, "notes", PIPELINE)
    with pytest.raises(WriterBusy):
        rebuild(home, "notes", OTHER)
    opened.writer.close()
    rebuild(home, "notes", OTHER)


def test_a_rebuild_that_fails_leaves_the_former_index(home: Home) -> None:
    living = home.incarnation("notes")
    changed = NotingExtractor()
    changed.fingerprint = "another"
    changed.unavailable = 1
    with pytest.raises(ModelUnavailable):
        rebuild(home, "notes", replace(PIPELINE, extractor=changed))
    assert home.incarnation("notes") == living
    assert not list(verify(home, "notes", PIPELINE))
    rebuild(home, "notes", replace(PIPELINE, extractor=changed))


def test_verifying_finds_nothing_and_changes_nothing(home: Home) -> None:
    opened = open_namespace(home, "notes", PIPELINE)
    before, manifest = folders(home), opened.writer.manifest
    assert not list(verify(home, "notes", PIPELINE)), "while somebody writes, too"
    assert folders(home) == before
    assert Reader(home.incarnation("notes")).snapshot.manifest == manifest
    opened.writer.close()


def test_verifying_finds_a_passage_that_no_document_has(home: Home) -> None:
    opened = open_namespace(home, "notes", PIPELINE)
    writer = opened.writer
    [key, *_] = writer.documents(["a"])["a"].passages
    stray = replace(writer.passages([key])[key], key=bytes(16), document="nobody")
    writer.commit(Changes(added=[stray]), {"log": 9}, 9)
    writer.close()
    before = folders(home)
    found = {difference.where: difference for difference in verify(home, "notes", PIPELINE)}
    assert found["passages"].key == bytes(16).hex() and found["passages"].right is None
    assert {"passages", "counts", "mentions entries", "terms entries"} <= found.keys()
    assert folders(home) == before


def test_verifying_needs_the_pipeline_that_made_the_index(home: Home) -> None:
    with pytest.raises(WrongFingerprint):
        list(verify(home, "notes", OTHER))
    for call in (lambda: rebuild(home, "nobody", PIPELINE), lambda: list(verify(home, "nobody", PIPELINE))):
        with pytest.raises(NotFound):
            call()
