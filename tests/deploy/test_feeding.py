"""Feeds side by side: taken up and let go while they run, by one process at a time, and by the server."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deploy.assembly import open_book, open_log
from deploy.embedded import Embedded
from deploy.feed_removal import removed
from deploy.feed_status import statuses
from deploy.feeding import Feeding, check_free
from deploy.settings import Settings
from index.errors import FeedEnded, WriterBusy
from index.metrics import Metrics
from streams.dead_letters import DeadLetters
from streams.feeds.book import Book, Entry
from streams.feeds.deliver import Delivered
from streams.log import Log
from tests.support import wait_until


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data", port=0, embedding_dimensions=32)


@pytest.fixture
def book(settings: Settings) -> Iterator[Book]:
    with open_book(settings) as book:
        yield book


@pytest.fixture
def log(settings: Settings) -> Iterator[Log]:
    with open_log(settings) as log:
        yield log


def feeding(settings: Settings, book: Book, log: Log) -> Feeding:
    return Feeding(settings, book, log, DeadLetters(log), Metrics())


def add(book: Book, root: Path, name: str = "notes") -> Entry:
    root.mkdir(exist_ok=True)
    (root / "a.txt").write_text("Anna sailed to Falkirk.")
    return book.add(Entry(name, "folder", str(root), "notes", {"prefix": f"{name}/"}))


def test_feeds_are_taken_up_and_let_go_while_it_runs(settings: Settings, book: Book, log: Log, tmp_path: Path) -> None:
    first = add(book, tmp_path / "one", "one")
    with feeding(settings, book, log) as running:
        running.start()
        wait_until(lambda: book.progress(first).events == 1, what="the first feed")
        second = add(book, tmp_path / "two", "two")
        wait_until(lambda: book.progress(second).events == 1, what="the second feed")
        with pytest.raises(WriterBusy, match="the feed one is being written by process"):
            check_free(settings, [first])
        tokens = removed(settings, book, first, log, wait_seconds=30)
        assert len(tokens) == 1
        (tmp_path / "one" / "late.txt").write_text("Too late.")
        (tmp_path / "two" / "b.txt").write_text("Bert.")
        wait_until(lambda: book.progress(second).events == 2, what="the second feed going on")
    events = [accepted.event for accepted in log.read("notes", 0, 100, 2**20)]
    assert [(event.op, event.id) for event in events] == [
        ("upsert", "one/a.txt"),
        ("upsert", "two/a.txt"),
        ("delete", "one/a.txt"),
        ("upsert", "two/b.txt"),
    ]
    assert [entry.name for entry in book.entries()] == ["two"]


def test_a_feed_is_run_by_one_process_and_taken_over_when_that_ends(
    settings: Settings, book: Book, log: Log, tmp_path: Path
) -> None:
    entry = add(book, tmp_path / "one")
    with feeding(settings, book, log) as first:
        first.start()
        wait_until(lambda: book.progress(entry).events == 1, what="the feed")
        with feeding(settings, book, log) as second:
            second.start()
            with pytest.raises(WriterBusy):
                second.once(entry, lambda delivered: None)
            first.__exit__()
            (tmp_path / "one" / "b.txt").write_text("Bert.")
            wait_until(lambda: book.progress(entry).events == 2, what="taking over")
    assert log.last_position() == 2


def test_one_that_is_not_let_go_is_removed_later(settings: Settings, book: Book, log: Log, tmp_path: Path) -> None:
    entry = add(book, tmp_path / "one")
    with feeding(settings, book, log) as running:
        hold, holding = threading.Event(), threading.Event()

        def on_delivered(_: Delivered) -> None:
            holding.set()
            hold.wait(10)

        def once() -> None:
            with pytest.raises(FeedEnded):
                running.once(entry, on_delivered)

        thread = threading.Thread(target=once)
        thread.start()
        assert holding.wait(10)
        with pytest.raises(WriterBusy):
            removed(settings, book, entry, log, wait_seconds=0)
        assert statuses(book)["notes"]["error"] == "it is being removed"
        hold.set()
        thread.join(10)
    removed(settings, book, entry, log, wait_seconds=10)
    assert statuses(book) == {}


def test_the_server_runs_the_feeds_unless_told_otherwise(settings: Settings, book: Book, tmp_path: Path) -> None:
    entry = add(book, tmp_path / "one")
    away = book.add(Entry("away", "folder", str(tmp_path / "nowhere"), "notes", {"prefix": "away/"}))
    with Embedded(settings.model_copy(update={"run_feeds": False})) as server:
        assert httpx.get(f"{server.url}/v1/status").json()["feeds"]["notes"]["events"] == 0
    with Embedded(settings) as server:
        document = f"{server.url}/v1/namespaces/notes/documents/notes/a.txt"
        wait_until(lambda: httpx.get(document).status_code == 200, timeout=30, what="the document of the feed")
        (tmp_path / "one" / "a.txt").unlink()
        wait_until(lambda: httpx.get(document).status_code == 404, timeout=30, what="its end")
        wait_until(lambda: book.progress(away).error is not None, what="the failure of the other")
        feeds = httpx.get(f"{server.url}/v1/status").json()["feeds"]
        assert feeds["notes"]["events"] == 2 and feeds["notes"]["error"] is None
        assert "there is no folder" in feeds["away"]["error"]
        metrics = httpx.get(f"{server.url}/metrics").text
        assert 'gistream_feed_events_total{feed="notes"} 2.0' in metrics
        assert 'gistream_feed_failures_total{feed="away"}' in metrics
        succeeded = (book.progress(entry).succeeded_at or 0) / 1e6
        [said] = re.findall(r'^gistream_feed_last_success_timestamp_seconds\{feed="notes"\} (\S+)$', metrics, re.M)
        assert abs(float(said) - succeeded) < 60
