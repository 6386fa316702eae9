"""Following a feed: what its failures do, and what is counted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event

import pytest

from index.errors import FeedEnded, FeedError
from index.types import DocumentEvent
from streams.feeds.base import Memory, Step
from streams.feeds.book import Book
from streams.feeds.folder import Folder
from streams.log import Log
from tests.support import wait_until

from .sources import NAMESPACE, Delivered, Files


class Moody:
    """A feed that raises what it is told to, one error a look, and then brings a document at every look."""

    name = "moody"
    skipped: Mapping[str, int] = {".png": 1}

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.looks = 0

    def poll(self, memory: Memory) -> Iterator[Step]:
        self.looks += 1
        yield Step((DocumentEvent(namespace=NAMESPACE, id=f"d{self.looks}"),))
        if self.errors:
            raise self.errors.pop(0)

    def wait(self, stop: Event) -> None:
        stop.wait()


@pytest.fixture
def delivered(log: Log, book: Book, tmp_path: Path) -> Delivered:
    return Delivered(log, book, Files(tmp_path))


def test_errors_are_noted_and_the_source_tried_again(delivered: Delivered, caplog: pytest.LogCaptureFixture) -> None:
    feed = Moody(FeedError("away", after=0.0))
    stop = Event()
    thread = threading.Thread(target=delivered.follower(feed=feed).run, args=(stop,))
    with caplog.at_level(logging.WARNING):
        thread.start()
        wait_until(lambda: delivered.book.progress(delivered.entry).succeeded_at is not None, what="a success")
        stop.set()
        thread.join(10)
    assert [event.id for event in delivered.news()] == ["d1", "d2"]
    assert "feed feed, again in 0 s: away" in caplog.text
    assert "Traceback" not in caplog.text
    text = delivered.metrics.render().decode()
    assert 'gistream_feed_events_total{feed="feed"} 2.0' in text
    assert 'gistream_feed_failures_total{feed="feed"} 1.0' in text
    assert delivered.book.progress(delivered.entry).skipped == {".png": 1}


def test_a_defect_shows_its_place_and_waits(delivered: Delivered, caplog: pytest.LogCaptureFixture) -> None:
    stop = Event()
    follower = delivered.follower(feed=Moody(KeyError("a defect")))
    thread = threading.Thread(target=follower.run, args=(stop,))
    with caplog.at_level(logging.WARNING):
        thread.start()
        wait_until(lambda: "Traceback" in caplog.text, what="the place of the defect")
        stop.set()
        thread.join(10)
    assert not thread.is_alive()
    assert "a defect" in (delivered.book.progress(delivered.entry).error or "")


def test_what_has_ended_is_not_asked_again(delivered: Delivered) -> None:
    feed = Moody(FeedEnded("gone"))
    delivered.follower(feed=feed).run(Event())
    assert feed.looks == 1
    assert delivered.book.progress(delivered.entry).error == "gone"


def test_a_removed_feed_ends_by_itself(delivered: Delivered) -> None:
    follower = delivered.follower()
    delivered.book.begin_removal(delivered.entry)
    delivered.source.put("a.txt", "Anna.")
    follower.run(Event())
    assert delivered.news() == []


def test_a_folder_is_followed_as_it_changes(delivered: Delivered, tmp_path: Path) -> None:
    root = tmp_path / "files"
    feed = Folder(root, NAMESPACE, settle_seconds=0.05, rescan_seconds=30)
    stop = Event()
    thread = threading.Thread(target=delivered.follower(feed=feed).run, args=(stop,))
    thread.start()
    try:
        for number in range(3):
            (root / f"{number}.txt").write_text(f"Number {number}.")
            wait_until(lambda: len(delivered.documents()) == number + 1, what=f"document {number}")  # noqa: B023
        (root / "sub").mkdir()
        (root / "0.txt").rename(root / "sub" / "moved.txt")
        (root / "1.txt").unlink()
        wait_until(
            lambda: delivered.documents() == {"sub/moved.txt": "Number 0.", "2.txt": "Number 2."}, what="the move"
        )
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def test_a_folder_that_comes_back_is_watched_again(delivered: Delivered, tmp_path: Path) -> None:
    root = tmp_path / "files"
    feed = Folder(root, NAMESPACE, settle_seconds=0.05, rescan_seconds=1000)
    stop = Event()
    thread = threading.Thread(target=delivered.follower(feed=feed).run, args=(stop,))
    (root / "a.txt").write_text("Anna.")
    thread.start()
    try:
        wait_until(lambda: delivered.documents() == {"a.txt": "Anna."}, what="the document")
        root.rename(tmp_path / "elsewhere")
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "b.txt").write_text("Bert.")
        wait_until(lambda: delivered.book.progress(delivered.entry).error is not None, what="missing it", timeout=30)
        (tmp_path / "b").rename(root)
        wait_until(lambda: delivered.documents() == {"b.txt": "Bert."}, what="the other folder", timeout=30)
        (root / "c.txt").write_text("Carla.")
        wait_until(lambda: "c.txt" in delivered.documents(), what="being told of a change in it")
    finally:
        stop.set()
        thread.join(10)
