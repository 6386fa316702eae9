"""RSS and Atom: the entries of a web feed, each a document, asked for politely and only when they changed."""

from __future__ import annotations

import calendar
import io
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from threading import Event
from typing import Any, Final, Literal, NamedTuple

import feedparser

from index.errors import FeedEnded, FeedError, InvalidEvent
from index.types import MAX_ID_BYTES, DocumentEvent

from ..events import DEFAULT_LIMITS, Limits, canonical_metadata, validated
from .base import MAX_PAYLOAD, Memory, Rejected, Step
from .fetch import Answer, Fetcher
from .formats.base import one_line
from .formats.html import fragment

INTERVAL_SECONDS: Final = 900.0
LONGEST_PAUSE: Final = 24 * 3600.0
_SHORTEST_PAUSE: Final = 60.0
_PATIENCE: Final = 5
"""Failures after which an address that a server once moved us to is given up for the one that was added."""

_REFUSED: Final = "!"
"""Begins the state of an entry that could not become an event; it is not told again while it stays the same."""

OnDisappear = Literal["keep", "delete"]


class _Cursor(NamedTuple):
    """How the source answered last."""

    address: str = ""
    """Where it moved to; "" is where it was added."""
    etag: str = ""
    modified: str = ""
    not_before: float = 0.0
    """Seconds since 1970; it wants no request sooner."""
    failures: int = 0
    """In a row."""
    gone: bool = False


class Rss:
    """Every entry of a feed is a document; its id is `prefix` and the entry's own id, or else its link.

    The title and the text are the entry's, without markup; its event time when it was updated, or else published.
    An entry that leaves the feed stays a document: a feed is a window onto the newest entries, and what slides out of
    it is old and not withdrawn. `on_disappear="delete"` is for feeds that list all there is.
    """

    def __init__(
        self,
        address: str,
        namespace: str,
        fetcher: Fetcher,
        *,
        prefix: str = "",
        limits: Limits = DEFAULT_LIMITS,
        interval_seconds: float = INTERVAL_SECONDS,
        on_disappear: OnDisappear = "keep",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = address
        self.skipped: Mapping[str, int] = {}
        self._namespace = namespace
        self._fetcher = fetcher
        self._prefix = prefix
        self._limits = limits
        self._interval = interval_seconds
        self._on_disappear = on_disappear
        self._clock = clock

    def poll(self, memory: Memory) -> Iterator[Step]:
        """See Feed. Raises FeedEnded once the server has said 410 Gone, and then asks it no more."""
        cursor = _Cursor(*json.loads(memory.cursor)) if memory.cursor else _Cursor()
        if cursor.gone:
            raise FeedEnded(f"{self.name} is gone for good (410)", hint="remove this feed")
        if (pause := cursor.not_before - self._clock()) > 0:
            raise FeedError(f"{self.name} is left alone for {pause:.0f} s more", after=pause)
        try:
            answer = self._fetcher.get(cursor.address or self.name, etag=cursor.etag, modified=cursor.modified)
            entries, is_whole = ([], False) if answer.status == 304 else self._entries(answer)
        except FeedEnded:
            yield _moved(cursor._replace(gone=True))
            raise
        except FeedError as error:
            failures = cursor.failures + 1
            pause = _pause(failures) if error.after is None else error.after
            address = "" if failures >= _PATIENCE else cursor.address
            yield _moved(cursor._replace(not_before=self._clock() + pause, failures=failures, address=address))
            raise FeedError(error.message, hint=error.hint, after=pause) from error
        yield from self._steps(entries, is_whole, memory)
        moved_to = "" if answer.moved_to == self.name else answer.moved_to
        # After an answer that could only be read in part, all of it is asked for again.
        known = answer.headers if is_whole else {}
        seen = _Cursor(moved_to, known.get("etag", ""), known.get("last-modified", ""))
        after = cursor._replace(address=moved_to, not_before=0.0, failures=0) if answer.status == 304 else seen
        if after != cursor:
            # Last: killed before, the next look reads all entries again.
            yield _moved(after)

    def wait(self, stop: Event) -> None:
        """For the interval, a little more or less, so that feeds added together are not asked together for ever."""
        stop.wait(self._interval * random.uniform(0.9, 1.1))

    def _entries(self, answer: Answer) -> tuple[list[Any], bool]:
        """The entries of an answer, and whether they are all. Raises FeedError, or FeedEnded for 410 Gone."""
        if answer.status == 410:
            raise FeedEnded(f"{self.name} is gone for good (410)", hint="remove this feed")
        if answer.status != 200:
            raise FeedError(f"{self.name} answered with status {answer.status}", after=answer.pause())
        # What is relative in it, ids too, is so to the address that was added: when the feed moves, they stay the same.
        headers = {"content-type": answer.headers.get("content-type", ""), "content-location": self.name}
        try:
            parsed = feedparser.parse(io.BytesIO(answer.body), response_headers=headers, sanitize_html=False)
        except Exception as error:
            # The library raises whatever its parts meet in a strange feed.
            raise FeedError(f"{self.name} cannot be read as a feed: {type(error).__name__}: {error}") from error
        flaw = parsed.get("bozo_exception") if parsed.bozo else None
        if not parsed.entries and not parsed.get("version"):
            reason = f": {flaw}" if flaw else ""
            raise FeedError(f"{self.name} is no RSS or Atom feed{reason}", hint="open the address in a browser")
        is_whole = flaw is None or isinstance(flaw, feedparser.CharacterEncodingOverride | feedparser.NonXMLContentType)
        return list(parsed.entries), is_whole

    def _steps(self, entries: list[Any], is_whole: bool, memory: Memory) -> Iterator[Step]:
        # The newest entries come first, and of two with one id the newer counts; delivered is in order of time.
        listed: dict[str, Any] = {}
        for entry in entries:
            listed.setdefault(self._id(entry), entry)
        for id, entry in reversed(listed.items()):
            fields = self._fields(id, entry)
            state = blake2b(canonical_metadata(fields).encode("utf-8", "replace"), digest_size=16).hexdigest()
            if memory.items.get(id, "").removeprefix(_REFUSED) == state:
                continue
            try:
                event = validated(fields, self._limits)
            except InvalidEvent as error:
                payload = json.dumps(fields).encode()[:MAX_PAYLOAD]
                rejected = Rejected(self.name, f"entry {id[:200]!r}", str(error), payload)
                yield Step(rejected=(rejected,), items={id: _REFUSED + state})
            else:
                yield Step((event,), items={id: state})
        if self._on_disappear == "delete" and is_whole:
            for id, state in list(memory.items.items()):
                if id not in listed:
                    deletion = DocumentEvent(op="delete", namespace=self._namespace, id=id)
                    yield Step(() if state.startswith(_REFUSED) else (deletion,), items={id: None})

    def _id(self, entry: Any) -> str:
        own = entry.get("id") or entry.get("link") or ""
        if not own:
            own = _digest(f"{entry.get('title', '')}\n{entry.get('summary', '')}")
        own = own.encode(errors="replace").decode()
        id = f"{self._prefix}{own}"
        return id if len(id.encode()) <= MAX_ID_BYTES else f"{self._prefix}{_digest(own)}"

    def _fields(self, id: str, entry: Any) -> dict[str, Any]:
        full_title = _text(entry.get("title_detail") or {"value": entry.get("title", "")})
        title = one_line(full_title)
        contents = entry.get("content") or [entry.get("summary_detail") or {"value": entry.get("summary", "")}]
        text = "\n\n".join(filter(None, map(_text, contents)))
        metadata = {
            "feed": self.name,
            "link": entry.get("link", ""),
            "author": entry.get("author", ""),
            "tags": [tag["term"] for tag in entry.get("tags", ()) if tag.get("term")],
        }
        fields = {
            "namespace": self._namespace,
            "id": id,
            "title": title,
            # An entry may be all title, and a title too long for one is text.
            "text": text if title and text else "\n\n".join(filter(None, (full_title, text))),
            "metadata": {name: value for name, value in metadata.items() if value},
        }
        # Asked for a date that it lacks, an entry would give another one, with a warning.
        moments = [_moment(entry.get(name)) for name in ("updated_parsed", "published_parsed") if name in entry]
        if moment := next(filter(None, moments), None):
            fields["event_time"] = moment.isoformat()
        return fields


def _text(detail: Mapping[str, Any]) -> str:
    value = str(detail.get("value") or "").encode(errors="replace").decode()
    return value.strip() if detail.get("type") == "text/plain" else fragment(value)


def _moment(parsed: Any) -> datetime | None:
    """A date as feedparser gives it; None for one that is no date."""
    try:
        return None if parsed is None else datetime.fromtimestamp(calendar.timegm(parsed), UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def _moved(cursor: _Cursor) -> Step:
    return Step(cursor=json.dumps(cursor))


def _pause(failures: int) -> float:
    """Seconds until a source that failed so often is asked again: doubled each time, and never in step with others."""
    return min(_SHORTEST_PAUSE * 2.0 ** min(failures - 1, 20), LONGEST_PAUSE) * random.uniform(0.75, 1.0)


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=16).hexdigest()
