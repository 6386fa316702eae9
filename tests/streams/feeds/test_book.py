"""The book of feeds: what it keeps, for whom, and what a removal leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from index.errors import BadRequest, FeedEnded, NotFound
from streams.feeds.base import Memory, Step
from streams.feeds.book import Book, Entry, Progress

ENTRY = Entry("notes", "folder", "somewhere", "ns", {"prefix": ""})


def test_what_was_added_is_there_after_a_restart(book: Book, tmp_path: Path) -> None:
    added = book.add(ENTRY)
    book.keep(added, [Step(items={"a": "1", "b": "2"}, cursor="x"), Step(items={"b": None, "c": ""})])
    book.note(added, events=2, rejected=1, skipped={".png": 3})
    with Book(tmp_path / "feeds.db") as again:
        assert again.entries() == [added] == [again.get("notes")]
        assert again.memory(added) == Memory("x", {"a": "1", "c": ""})
        progress = again.progress(added)
        assert (progress.events, progress.rejected, progress.documents, progress.skipped) == (2, 1, 2, {".png": 3})


@pytest.mark.parametrize("name", ["", "UP", "a b", "../x", "-a", "x" * 64])
def test_names(book: Book, name: str) -> None:
    with pytest.raises(BadRequest, match="no name of a feed"):
        book.add(Entry(name, "folder", "somewhere", "ns"))
    book.add(ENTRY)
    with pytest.raises(BadRequest, match="there is a feed notes already"):
        book.add(ENTRY)
    with pytest.raises(NotFound):
        book.get("other")


def test_a_failure_lasts_until_the_next_success(tmp_path: Path) -> None:
    moments = iter(range(1, 10))
    with Book(tmp_path / "feeds.db", clock=lambda: next(moments)) as book:
        entry = book.add(ENTRY)
        assert book.progress(entry) == Progress()
        book.note(entry, events=1, rejected=0, skipped={})
        book.note(entry, events=0, rejected=0, skipped={}, error="away")
        assert book.progress(entry) == Progress(1, 0, 0, succeeded_at=1, failed_at=2, error="away")
        book.note(entry, events=1, rejected=0, skipped={})
        assert book.progress(entry) == Progress(2, 0, 0, succeeded_at=3)


def test_of_a_removed_feed_nothing_is_kept_and_a_new_one_begins_empty(book: Book) -> None:
    old = book.add(ENTRY)
    book.keep(old, [Step(items={"a": "1"}, cursor="x")])
    book.begin_removal(old)
    with pytest.raises(FeedEnded):
        book.keep(old, [Step(items={"b": "1"})])
    assert book.memory(old).items == {"a": "1"}
    book.remove(old)
    new = book.add(ENTRY)
    with pytest.raises(FeedEnded):
        book.keep(old, [Step(items={"b": "1"})])
    with pytest.raises(FeedEnded):
        book.note(old, events=1, rejected=0, skipped={})
    assert new.number != old.number
    assert book.memory(new) == book.memory(old) == Memory()
