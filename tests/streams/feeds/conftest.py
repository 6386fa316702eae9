"""What the tests of feeds may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.feeds.book import Book
from streams.feeds.fetch import Fetcher
from streams.log import Log
from tests.broker.cluster import Cluster

from .foreign import ForeignTopic, foreign_topic
from .sources import Delivered, Files, GrowingFile, Sent, Source, WebFeed
from .web import Web, web


@pytest.fixture
def site() -> Iterator[Web]:
    with web() as served:
        yield served


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    """One that does not wait between two requests."""
    fetcher = Fetcher(host_seconds=0)
    yield fetcher
    fetcher.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log.db") as opened:
        yield opened


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    with Book(tmp_path / "feeds.db") as opened:
        yield opened


@pytest.fixture
def foreign(kafka: Cluster, kafka_prefix: str) -> Iterator[ForeignTopic]:
    with foreign_topic(kafka, f"{kafka_prefix}articles") as topic:
        yield topic


@pytest.fixture(params=["folder", "jsonl", "rss", "topic", "push"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """Every kind of source in turn."""
    match request.param:
        case "folder":
            return Files(tmp_path)
        case "jsonl":
            return GrowingFile(tmp_path)
        case "rss":
            return WebFeed(request.getfixturevalue("site"), request.getfixturevalue("fetcher"))
        case "topic":
            topic: ForeignTopic = request.getfixturevalue("foreign")
            return topic
        case _:
            return Sent()


@pytest.fixture
def delivered(log: Log, book: Book, source: Source) -> Delivered:
    return Delivered(log, book, source)
