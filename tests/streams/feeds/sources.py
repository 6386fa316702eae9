"""Sources that a test can change, each read by a feed of its kind, and an inbox whose documents can be looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Protocol
from xml.sax.saxutils import escape

from index.metrics import Metrics
from index.types import DocumentEvent
from streams.dead_letters import DeadLetters
from streams.events import Limits
from streams.feeds.base import Feed, Memory, Step
from streams.feeds.book import Book, Entry
from streams.feeds.fetch import Fetcher
from streams.feeds.folder import Folder
from streams.feeds.follow import Follower
from streams.feeds.jsonl import JsonLines
from streams.feeds.push import documents
from streams.feeds.rss import Rss
from streams.letter import DeadLetter
from streams.log import Log

from .web import Web

SMALL = Limits(document_bytes=1000, metadata_bytes=1000)
NAMESPACE = "news"


class Source(Protocol):
    """Something that holds texts by name."""

    remembers: bool
    """Whether its feed says nothing of what it said before."""

    def put(self, name: str, text: str) -> None: ...

    def spoil(self, name: str) -> None:
        """Put an item that nothing can be made of."""
        ...

    def remove(self, name: str) -> None:
        """Take an item away, in the way that means: it shall be gone."""
        ...

    def feed(self) -> Feed:
        """A new feed, as after a start of the process."""
        ...

    def id(self, name: str) -> str:
        """The id of its document."""
        ...


class Files:
    remembers = True

    def __init__(self, folder: Path) -> None:
        self.root = folder / "files"
        self.root.mkdir()

    def put(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def spoil(self, name: str) -> None:
        (self.root / name).write_bytes(b"\xff")

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    def feed(self) -> Feed:
        return Folder(self.root, NAMESPACE, limits=SMALL)

    def id(self, name: str) -> str:
        return name


class GrowingFile:
    remembers = True

    def __init__(self, folder: Path) -> None:
        self.path = folder / "events.jsonl"
        self.path.touch()

    def _add(self, line: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(line + b"\n")

    def put(self, name: str, text: str) -> None:
        self._add(json.dumps({"id": name, "text": text}).encode())

    def spoil(self, name: str) -> None:
        self._add(b'{"id": "\xff"}')

    def remove(self, name: str) -> None:
        self._add(json.dumps({"id": name, "op": "delete"}).encode())

    def feed(self) -> Feed:
        return JsonLines(self.path, NAMESPACE, limits=SMALL, grows=True)

    def id(self, name: str) -> str:
        return name


class WebFeed:
    """A feed that lists all there is, on a server of this machine."""

    remembers = True

    def __init__(self, web: Web, fetcher: Fetcher) -> None:
        self.web = web
        self.fetcher = fetcher
        self.items: dict[str, str] = {}
        self._publish()

    def _publish(self) -> None:
        self.web.publish("/feed.xml", rss(self.items))

    def put(self, name: str, text: str) -> None:
        self.items[name] = text
        self._publish()

    def spoil(self, name: str) -> None:
        self.put(name, "x" * 1001)

    def remove(self, name: str) -> None:
        del self.items[name]
        self._publish()

    def feed(self) -> Feed:
        address = f"{self.web.url}/feed.xml"
        return Rss(address, NAMESPACE, self.fetcher, prefix="web/", limits=SMALL, on_disappear="delete")

    def id(self, name: str) -> str:
        return f"web/{name}"


class Sent:
    """A client that pushes all it has whenever it is asked to: it is the one who would have to remember."""

    remembers = False

    def __init__(self) -> None:
        self.lines: dict[str, bytes] = {}
        self.name = "push"
        self.skipped: Mapping[str, int] = {}

    def put(self, name: str, text: str) -> None:
        self.lines[name] = json.dumps({"id": name, "text": text}).encode()

    def spoil(self, name: str) -> None:
        self.lines[name] = b'{"id": "\xff"}'

    def remove(self, name: str) -> None:
        self.lines[name] = json.dumps({"id": name, "op": "delete"}).encode()

    def feed(self) -> Feed:
        return self

    def id(self, name: str) -> str:
        return name

    def poll(self, memory: Memory) -> Iterator[Step]:
        yield from documents(b"\n".join(self.lines.values()), "application/x-ndjson", NAMESPACE, SMALL)

    def wait(self, stop: Event) -> None:
        stop.wait()


def rss(items: Mapping[str, str]) -> bytes:
    """An RSS document, the newest item (the last) first, as feeds are."""
    entries = "".join(
        f"<item><guid isPermaLink='false'>{escape(name)}</guid><title>{escape(name)}</title>"
        f"<description>{escape(escape(text))}</description></item>"
        for name, text in reversed(list(items.items()))
    )
    return f"<?xml version='1.0'?><rss version='2.0'><channel><title>t</title>{entries}</channel></rss>".encode()


@dataclass
class Delivered:
    """A log, a book and one feed in it. Every `follow` is a start of the process anew."""

    log: Log
    book: Book
    source: Source
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self.letters = DeadLetters(self.log)
        self.entry = self.book.add(Entry("feed", "folder", "somewhere", NAMESPACE))
        self._seen = 0

    def follow(self, inbox: Log | None = None) -> list[DocumentEvent]:
        """Look at the source once, and return what this brought."""
        self.follower(inbox).once()
        return self.news()

    def follower(self, inbox: Log | None = None, feed: Feed | None = None) -> Follower:
        return Follower(
            self.entry, feed or self.source.feed(), self.book, inbox or self.log, self.letters, self.metrics
        )

    def news(self) -> list[DocumentEvent]:
        """What was appended since this was asked last."""
        found = self.log.read(NAMESPACE, self._seen, 10_000, 2**30)
        self._seen = self.log.last_position()
        return [accepted.event for accepted in found]

    def documents(self) -> dict[str, str]:
        """Text by id of every document, as the events leave them."""
        held: dict[str, str] = {}
        for accepted in self.log.read(NAMESPACE, 0, 10_000, 2**30):
            if accepted.event.op == "delete":
                held.pop(accepted.event.id, None)
            else:
                held[accepted.event.id] = accepted.event.text
        return held

    def refused(self) -> list[DeadLetter]:
        return self.letters.waiting()
