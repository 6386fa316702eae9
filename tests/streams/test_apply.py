"""Tests of applying a batch: which version wins, what is read again, and that order and batching do not matter."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index import compare
from index.home import Home
from index.manifest import Counts
from index.types import Accepted, Document, DocumentEvent
from streams.apply import Applied, apply, wins_by
from streams.pipeline import Opened, open_namespace

from .stubs import SMALL, NotingExtractor, small_pipeline

SENTENCES = [f"Ada Moor met Bo Larsen at Pier {number}." for number in range(12)]
TEXT = " ".join(SENTENCES)


class Applying:
    """One namespace, to which events are applied as if a log had accepted them one after another."""

    def __init__(self, folder: Path) -> None:
        self.extractor = NotingExtractor()
        self.opened: Opened = open_namespace(Home(folder), "notes", small_pipeline(self.extractor))
        self.position = 0

    def __call__(self, *events: DocumentEvent | Accepted) -> Applied:
        batch = []
        for event in events:
            self.position += 1
            stamp = event.stamp if isinstance(event, Accepted) else 1_000_000 + self.position
            inside = event.event if isinstance(event, Accepted) else event
            batch.append(Accepted(self.position, stamp, inside, {"log": self.position}))
        return apply(self.opened.writer, "notes", batch, SMALL, self.opened.understand)

    def document(self, id: str = "d") -> Document:
        return self.opened.writer.documents([id])[id]

    @property
    def counts(self) -> Counts:
        return self.opened.writer.manifest.counts

    def state(self) -> compare.State:
        return compare.newest_state(self.opened.writer.folder)


@pytest.fixture
def applying(tmp_path: Path) -> Iterator[Applying]:
    made = Applying(tmp_path)
    yield made
    made.opened.writer.close()


def put(text: str, version: int | None = None, id: str = "d", **fields: Any) -> DocumentEvent:
    return DocumentEvent(namespace="notes", id=id, version=version, text=text, **fields)


def gone(version: int | None = None, id: str = "d") -> DocumentEvent:
    return DocumentEvent(op="delete", namespace="notes", id=id, version=version)


EQUAL = max(put("one", 3), put("two", 3), key=lambda event: wins_by(3, False, "", event.text, "{}", None))

HISTORIES: dict[str, tuple[list[DocumentEvent], DocumentEvent]] = {
    "greater version": ([put("old", 1), put("new", 2)], put("new", 2)),
    "late older version": ([put("new", 2), put("old", 1)], put("new", 2)),
    "equal version, delete last": ([put("text", 3), gone(3)], gone(3)),
    "equal version, delete first": ([gone(3), put("text", 3)], gone(3)),
    "equal versions": ([put("one", 3), put("two", 3)], EQUAL),
    "equal versions, other way round": ([put("two", 3), put("one", 3)], EQUAL),
    "late older version of a deleted one": ([put("text", 3), gone(5), put("late", 4)], gone(5)),
    "newer version of a deleted one": ([gone(5), put("again", 6)], put("again", 6)),
    "late older delete": ([put("text", 5), gone(4)], put("text", 5)),
    "without versions the last one": ([put("one"), put("two"), put("three")], put("three")),
    "without versions, deleted": ([put("one"), gone()], gone()),
    "without versions, reborn": ([put("one"), gone(), put("two")], put("two")),
    "the same event again": ([put("text", 2), put("text", 2)], put("text", 2)),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_the_version_that_wins(applying: Applying, history: str, in_one_batch: bool) -> None:
    events, winner = HISTORIES[history]
    if in_one_batch:
        applied = applying(*events)
        assert (applied.events, applied.superseded) == (len(events), len(events) - 1)
    else:
        for event in events:
            applying(event)
    row = applying.document()
    assert (row.deleted, row.text) == (winner.op == "delete", winner.text)
    assert winner.version in (None, row.version)
    assert applying.counts.documents == applying.counts.passages == (0 if row.deleted else 1)
    assert applying.opened.writer.manifest.positions == {"log": len(events)}
    assert applying.opened.writer.manifest.watermark == 1_000_000 + len(events)


def test_a_tombstone_keeps_the_version_and_no_text(applying: Applying) -> None:
    applying(put(TEXT, 1, title="Title", metadata={"a": 1}, event_time=datetime(2024, 5, 31, tzinfo=UTC)))
    applying(gone(7))
    assert applying.document() == Document("d", 7, True, "", "", "{}", None, 1_000_002, ())
    assert applying.counts == Counts()
    state = applying.state()
    assert not any(held for place, held in state.items() if place not in ("documents", "counts"))


def test_a_delete_of_what_was_never_there_is_remembered(applying: Applying) -> None:
    applying(gone(3))
    applying(put("late", 2))
    assert applying.document().deleted


def test_an_edit_in_the_middle_reads_only_what_is_around_it(applying: Applying) -> None:
    first = applying(put(TEXT))
    edited = [*SENTENCES]
    edited[6] = "Nobody was there that day."
    second = applying(put(" ".join(edited)))
    assert first.extracted >= 6 and first.reused == 0
    assert 1 <= second.extracted <= 3
    assert second.reused == applying.counts.passages - second.extracted
    kept = {row for row in applying.document().passages}
    assert len(kept) == applying.counts.passages


@pytest.mark.parametrize("change", [{"metadata": {"shelf": 2}}, {"event_time": datetime(2024, 5, 31, tzinfo=UTC)}])
def test_metadata_and_times_change_rows_and_read_nothing(applying: Applying, change: dict[str, Any]) -> None:
    applying(put(TEXT, metadata={"shelf": 1}))
    passages = applying.counts.passages
    applying.extractor.read.clear()
    applied = applying(put(TEXT, **change))
    assert (applied.extracted, applied.reused, applying.extractor.read) == (0, passages, [])
    row = applying.document()
    held = applying.opened.writer.passages(row.passages)
    assert {(passage.metadata, passage.event_time) for passage in held.values()} == {(row.metadata, row.event_time)}
    assert all(passage.extraction.triples for passage in held.values()), "what was read stays"


def test_under_another_title_every_passage_is_read_again(applying: Applying) -> None:
    applying(put(TEXT, title="Piers"))
    passages = applying.counts.passages
    applied = applying(put(TEXT, title="Harbours"))
    assert (applied.extracted, applied.reused) == (passages, 0)
    held = applying.opened.writer.passages(applying.document().passages)
    assert len(held) == applying.counts.passages == passages
    assert {passage.title for passage in held.values()} == {"Harbours"}


def test_the_same_content_under_a_new_version_reads_nothing(applying: Applying) -> None:
    applying(put(TEXT, 1))
    applied = applying(put(TEXT, 2))
    assert (applied.superseded, applied.extracted, applied.reused) == (0, 0, applying.counts.passages)
    assert applying.document().version == 2


def test_twins_within_a_document_are_two_passages(applying: Applying) -> None:
    line = "Ada Moor met Bo Larsen at the old pier.\n"
    applying(put(line * 6))
    keys = applying.document().passages
    texts = [applying.opened.writer.passages(keys)[key].text for key in keys]
    assert len(set(keys)) == len(keys) > len(set(texts))
    applying(put(line * 3))
    assert len(applying.document().passages) == applying.counts.passages < len(keys)


def test_a_batch_that_cannot_be_read_changes_nothing(applying: Applying) -> None:
    applying(put(TEXT, id="a"))
    before = applying.state()
    with pytest.raises(ValueError, match="poison"):
        applying(put("fine", id="b"), put("poison", id="c"), gone(id="a"))
    assert applying.state() == before
    applying.position -= 3
    applying(put("fine", id="b"), gone(id="a"))
    assert applying.counts.documents == 1


def test_every_document_is_there_once_whatever_the_batch(applying: Applying) -> None:
    applying(put("one", id="a"), put("two", id="b"), put("one again", id="a"), gone(id="b"), put("three", id="b"))
    assert applying.counts.documents == 2
    assert (applying.document("a").text, applying.document("b").text) == ("one again", "three")


versions = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.sampled_from([None, *SENTENCES[:3]])),
    unique=True, min_size=1, max_size=6,
)  # fmt: skip


@given(versions, st.randoms(), st.integers(1, 6))
@settings(max_examples=20)
def test_neither_order_nor_batches_matter(
    tmp_path_factory: pytest.TempPathFactory, events: Sequence[Any], chance: random.Random, size: int
) -> None:
    accepted = [
        Accepted(0, stamp, gone(version, id) if text is None else put(text, version, id))
        for stamp, (id, version, text) in enumerate(events, 1)
    ]
    states = []
    for shuffled in (accepted, chance.sample(accepted, len(accepted))):
        applying = Applying(tmp_path_factory.mktemp("order"))
        for start in range(0, len(shuffled), size):
            applying(*shuffled[start : start + size])
        states.append(applying.state())
        applying.opened.writer.close()
    found = list(compare.differences(*states))
    assert not found, "\n".join(map(str, found[:10]))


def test_the_order_of_versions_is_total() -> None:
    kinds = [(version, deleted, text) for version in (1, 2) for deleted in (False, True) for text in ("x", "y")]
    orders = [wins_by(version, deleted, "", text, "{}", None) for version, deleted, text in kinds]
    assert len(set(orders)) == len(orders)
    assert len({wins_by(1, False, a, b, c, None) for a, b, c in permutations(["", "a", "{}"])}) == 6
    assert wins_by(1, False, "", "", "{}", None) != wins_by(1, False, "", "", "{}", 0)
