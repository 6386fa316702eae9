"""Asking web servers: conditionally, in turns, through redirects and within bounds."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from index.errors import FeedError
from streams.feeds import fetch
from streams.feeds.fetch import Answer, Fetcher
from tests.support import wait_until

from .web import Reply, Web


def test_it_asks_for_what_changed_and_says_who_it_is(site: Web, fetcher: Fetcher) -> None:
    site.publish("/feed", b"hello", Last_Modified="yesterday")
    first = fetcher.get(f"{site.url}/feed")
    assert (first.status, first.body) == (200, b"hello")
    again = fetcher.get(f"{site.url}/feed", etag=first.headers["etag"], modified=first.headers["last-modified"])
    assert (again.status, again.body) == (304, b"")
    _, headers = site.asked[-1]
    assert headers["If-Modified-Since"] == "yesterday"
    assert headers["User-Agent"] == fetch.USER_AGENT


def test_only_what_moved_for_good_is_remembered(site: Web, fetcher: Fetcher) -> None:
    site.answer("/a", 301, Location="/b")
    site.answer("/b", 308, Location=f"{site.url}/c")
    site.answer("/c", 302, Location="/d")
    site.answer("/d", 301, Location="/e")
    site.publish("/e", b"there")
    answer = fetcher.get(f"{site.url}/a")
    assert (answer.body, answer.moved_to) == (b"there", f"{site.url}/c")


@pytest.mark.parametrize("to", ["/round", "file:///etc/passwd", "http://[", "http://"])
def test_redirects_that_lead_nowhere(site: Web, fetcher: Fetcher, to: str) -> None:
    site.answer("/round", 302, Location=to)
    with pytest.raises(FeedError):
        fetcher.get(f"{site.url}/round")
    assert len(site.asked) <= 6


def test_a_body_without_end_is_refused(site: Web, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "MOST_BYTES", 10_000)
    site.replies["/bomb"] = Reply(200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 10**6))
    with pytest.raises(FeedError, match="more than 10000 bytes"):
        fetcher.get(f"{site.url}/bomb")
    site.replies["/broken"] = Reply(200, {"Content-Encoding": "gzip"}, b"no gzip")
    with pytest.raises(FeedError, match="did not answer"):
        fetcher.get(f"{site.url}/broken")


def test_nobody_there(fetcher: Fetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(FeedError, match="did not answer"):
        fetcher.get(f"http://127.0.0.1:{port}/")


@pytest.fixture
def slow() -> Iterator[Fetcher]:
    fetcher = Fetcher(host_seconds=0.2)
    yield fetcher
    fetcher.close()


def test_one_request_at_a_time_for_each_host(site: Web, slow: Fetcher) -> None:
    site.publish("/feed", b"x")
    site.hold = threading.Event()
    threads = [threading.Thread(target=slow.get, args=(f"{site.url}/feed",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(site.asked) == 1, what="the first request")
    started = time.monotonic()
    site.hold.set()
    for thread in threads:
        thread.join(20)
    assert len(site.asked) == 3
    assert site.most_under_way == 1
    assert time.monotonic() - started >= 0.4


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("120", 120, 120),
        ("99999999999", 24 * 3600, 24 * 3600),
        ("Sat, 01 Jan 2000 00:00:00 GMT", 0, 0),
        ("Sat, 01 Jan 2000 00:00:00 -0000", 0, 0),
    ],
)
def test_how_long_a_server_asks_to_wait(said: str, least: float, most: float) -> None:
    pause = Answer(429, httpx.Headers({"retry-after": said}), b"", "").pause()
    assert pause is not None and least <= pause <= most


def test_or_until_when() -> None:
    said = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    pause = Answer(429, httpx.Headers({"retry-after": said}), b"", "").pause()
    assert pause is not None and 3500 < pause <= 3600


@pytest.mark.parametrize("said", ["", "soon", "-5"])
def test_or_does_not(said: str) -> None:
    assert Answer(429, httpx.Headers({"retry-after": said}), b"", "").pause() is None
