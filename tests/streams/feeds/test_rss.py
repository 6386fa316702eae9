"""Web feeds: entries to documents, and what the server and its feed may do."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from index.errors import FeedEnded, FeedError
from index.types import DocumentEvent
from streams.events import Limits
from streams.feeds.base import Memory, Rejected
from streams.feeds.fetch import Fetcher
from streams.feeds.rss import Rss

from .sources import rss
from .web import Reply, Web


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory() -> Memory:
    return Memory()


Look = Callable[..., list[DocumentEvent | Rejected]]


@pytest.fixture
def look(site: Web, fetcher: Fetcher, clock: Clock, memory: Memory) -> Look:
    """One look at /feed by a feed made anew, with all that it says learnt."""

    def look(**options: Any) -> list[DocumentEvent | Rejected]:
        feed = Rss(f"{site.url}/feed", "news", fetcher, prefix="web/", clock=clock, **options)
        found: list[DocumentEvent | Rejected] = []
        for step in feed.poll(memory):
            memory.learn(step)
            found += [*step.events, *step.rejected]
        return found

    return look


ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://example.org/">
<title>Harbour &amp; Quay</title>
<entry><id>tag:example.org,2024:2</id><title type="html">The &lt;b&gt;Lock&lt;/b&gt;</title>
<link href="/lock"/><updated>2024-05-31T20:00:00+02:00</updated><published>2024-05-01T00:00:00Z</published>
<author><name>Mara Quill</name></author><category term="news"/><category term="locks"/>
<content type="html">&lt;p&gt;Anna &amp;amp; Bert&lt;/p&gt;&lt;p&gt;repaired it.&lt;/p&gt;
&lt;script&gt;x&lt;/script&gt;</content></entry>
<entry><id>tag:example.org,2024:1</id><title>Old</title>
<summary>Plain &lt; text</summary><updated>no date</updated></entry>
</feed>"""


def test_an_entry_is_a_document(site: Web, look: Look) -> None:
    site.publish("/feed", ATOM.encode(), Content_Type="application/atom+xml")
    old, lock = look()
    assert lock == DocumentEvent(
        namespace="news",
        id="web/tag:example.org,2024:2",
        title="The Lock",
        text="Anna & Bert\n\nrepaired it.",
        metadata={
            "feed": f"{site.url}/feed",
            "link": "https://example.org/lock",
            "author": "Mara Quill",
            "tags": ["news", "locks"],
        },
        event_time=datetime(2024, 5, 31, 18, tzinfo=UTC),
    )
    assert isinstance(old, DocumentEvent)
    assert (old.title, old.text, old.event_time) == ("Old", "Plain < text", None)


@pytest.mark.parametrize(
    ("entry", "id", "title", "text"),
    [
        ("<link>http://e.org/a</link><title>T</title><description>D</description>", "web/http://e.org/a", "T", "D"),
        ("<guid isPermaLink='false'>g</guid><title>Only a title</title>", "web/g", "Only a title", "Only a title"),
        ("<guid isPermaLink='false'>g</guid><description>Only text</description>", "web/g", "", "Only text"),
        (f"<guid isPermaLink='false'>g</guid><title>{'x' * 300}</title>", "web/g", "", "x" * 300),
        (
            "<guid isPermaLink='false'>g</guid><title>&amp;eacute;t&amp;eacute; &#233;</title>",
            "web/g",
            "été é",
            "été é",
        ),
    ],
)
def test_entries_that_lack_something(site: Web, look: Look, entry: str, id: str, title: str, text: str) -> None:
    site.publish("/feed", f"<rss version='2.0'><channel><item>{entry}</item></channel></rss>".encode())
    [event] = look()
    assert isinstance(event, DocumentEvent)
    assert (event.id, event.title, event.text) == (id, title, text)


def test_ids_are_kept_short_and_twins_are_one(site: Web, look: Look) -> None:
    site.publish("/feed", rss({"x" * 600: "Long."}))
    [long] = look()
    assert isinstance(long, DocumentEvent) and len(long.id) < 50
    twins = b"<item><guid>a</guid><title>New</title></item><item><guid>a</guid><title>Old</title></item>"
    site.publish("/feed", b"<rss version='2.0'><channel>" + twins + b"</channel></rss>")
    [event] = look()
    assert isinstance(event, DocumentEvent) and event.title == "New"
    assert look() == []


def test_unchanged_it_is_not_even_sent(site: Web, look: Look) -> None:
    site.publish("/feed", rss({"a": "One."}))
    assert len(look()) == 1
    assert look() == []
    etag = site.replies["/feed"].headers["ETag"]
    assert [headers["If-None-Match"] for _, headers in site.asked] == [None, etag]


def test_an_entry_that_slides_out_stays_unless_told_otherwise(site: Web, look: Look, memory: Memory) -> None:
    site.publish("/feed", rss({"a": "One.", "b": "Two."}))
    look()
    site.publish("/feed", rss({"b": "Two."}))
    assert look() == []
    assert "web/a" in memory.items
    site.publish("/feed", rss({"b": "Two.", "c": "Three."}))
    new, gone = look(on_disappear="delete")
    assert isinstance(new, DocumentEvent) and new.id == "web/c"
    assert gone == DocumentEvent(op="delete", namespace="news", id="web/a")


def test_a_feed_cut_short_deletes_nothing_and_is_asked_for_again(site: Web, look: Look) -> None:
    whole = rss({"a": "One.", "b": "Two."})
    site.publish("/feed", whole)
    look(on_disappear="delete")
    # The newest entry comes first, so this one lacks the older.
    site.publish("/feed", whole[: whole.index(b"</item>") + 7])
    assert look(on_disappear="delete") == []
    site.publish("/feed", whole)
    assert look(on_disappear="delete") == []
    assert site.asked[-1][1]["If-None-Match"] is None


@pytest.mark.parametrize("body", [b"", b"<html><body>Sign in</body></html>", b"\0\xff", b"{}", b"<rss"])
def test_what_is_no_feed_is_an_error_and_deletes_nothing(site: Web, look: Look, clock: Clock, body: bytes) -> None:
    site.publish("/feed", rss({"a": "One."}))
    look(on_disappear="delete")
    site.publish("/feed", body)
    with pytest.raises(FeedError, match="no RSS or Atom feed") as raised:
        look(on_disappear="delete")
    assert "\n" not in str(raised.value)
    site.publish("/feed", rss({"a": "One."}))
    clock.now += 100
    assert look(on_disappear="delete") == []


def test_entities_do_not_multiply(site: Web, look: Look) -> None:
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    body = f'<!DOCTYPE rss [<!ENTITY e0 "lol">{entities}]><rss version="2.0"><channel><item><guid>a</guid>'
    site.publish("/feed", f"{body}<title>&e9;</title></item></channel></rss>".encode())
    try:
        found = look()
    except FeedError:
        return
    assert sum(len(item.text) for item in found if isinstance(item, DocumentEvent)) < 10_000


def test_an_entry_too_large_is_told_once_and_comes_when_it_is_repaired(site: Web, look: Look) -> None:
    site.publish("/feed", rss({"a": "x" * 200}))
    small = Limits(document_bytes=100)
    [flaw] = look(limits=small)
    assert isinstance(flaw, Rejected)
    assert flaw.place == "entry 'web/a'"
    assert json.loads(flaw.payload)["text"] == "x" * 200
    assert look(limits=small) == []
    site.publish("/feed", rss({"a": "Short."}))
    [event] = look(limits=small)
    assert isinstance(event, DocumentEvent)


def test_a_server_that_asks_to_wait_is_left_alone_also_after_a_restart(site: Web, look: Look, clock: Clock) -> None:
    site.answer("/feed", 429, Retry_After="120")
    with pytest.raises(FeedError) as raised:
        look()
    assert raised.value.after == 120
    site.publish("/feed", rss({"a": "One."}))
    clock.now += 119
    with pytest.raises(FeedError, match="left alone") as raised:
        look()
    assert raised.value.after is not None and 0 < raised.value.after <= 1
    assert len(site.asked) == 1
    clock.now += 1
    assert len(look()) == 1


def test_a_server_that_fails_is_asked_less_and_less(site: Web, look: Look, clock: Clock) -> None:
    site.answer("/feed", 503)
    pauses = []
    for _ in range(12):
        with pytest.raises(FeedError, match="status 503") as raised:
            look()
        assert raised.value.after is not None
        pauses.append(raised.value.after)
        clock.now += pauses[-1]
    assert 45 <= pauses[0] <= 60
    assert 90 <= pauses[1] <= 120
    assert pauses[-1] <= 24 * 3600
    site.publish("/feed", rss({"a": "One."}))
    assert len(look()) == 1


def test_gone_is_gone(site: Web, look: Look) -> None:
    site.answer("/feed", 410)
    for _ in range(2):
        with pytest.raises(FeedEnded, match="gone for good"):
            look()
    assert len(site.asked) == 1


def test_where_it_moved_for_good_it_is_asked_for(site: Web, look: Look, clock: Clock) -> None:
    site.answer("/feed", 301, Location="/new")
    site.publish("/new", rss({"a": "One."}))
    look()
    look()
    assert [path for path, _ in site.asked] == ["/feed", "/new", "/new"]
    # A new home that is lost again is given up in the end.
    site.answer("/new", 404)
    site.publish("/feed", rss({"a": "Two."}))
    for _ in range(5):
        with pytest.raises(FeedError):
            look()
        clock.now += 24 * 3600
    assert len(look()) == 1


def test_ids_stay_when_a_feed_moves(site: Web, look: Look) -> None:
    body = b"<rss version='2.0'><channel><item><guid>/lock</guid><pubDate>Sat, 01 Jun 2024 00:00:00 GMT</pubDate>"
    site.publish("/feed", body + b"<title>The Lock</title></item></channel></rss>")
    [event] = look()
    assert isinstance(event, DocumentEvent)
    assert event.id == f"web/{site.url}/lock"
    assert event.event_time == datetime(2024, 6, 1, tzinfo=UTC)
    site.answer("/feed", 301, Location=f"{site.url.replace('127.0.0.1', 'localhost')}/new")
    site.publish("/new", body + b"<title>The Lock</title></item></channel></rss> ")
    assert look() == []


def test_a_temporary_redirect_is_not_remembered(site: Web, look: Look) -> None:
    site.answer("/feed", 302, Location="/today")
    site.replies["/today"] = Reply(200, {}, rss({"a": "One."}))
    look()
    look()
    assert [path for path, _ in site.asked] == ["/feed", "/today"] * 2
