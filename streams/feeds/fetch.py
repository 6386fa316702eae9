"""Asking web servers politely: conditionally, one request at a time for each host, and within bounds."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx

from index.errors import FeedError

# It tells of every request.
logging.getLogger("httpx").setLevel(logging.WARNING)

USER_AGENT: Final = "gistream (feed reader)"
MOST_BYTES: Final = 32 * 2**20
_MOST_SECONDS: Final = 120.0
_MOST_REDIRECTS: Final = 5
_LONGEST_ASKED_PAUSE: Final = 24 * 3600.0
"""Seconds; whoever asks to be left alone for longer is asked once a day."""


class Answer(NamedTuple):
    """What a server said."""

    status: int
    headers: httpx.Headers
    body: bytes
    moved_to: str
    """The address to ask from now on: another one where the server said that it moved for good."""

    def pause(self) -> float | None:
        """Seconds that the server asks to wait (Retry-After), None where it does not say."""
        said = self.headers.get("retry-after", "").strip()
        if said.isdecimal():
            return min(float(said), _LONGEST_ASKED_PAUSE)
        try:
            moment = parsedate_to_datetime(said)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return min(max((moment - datetime.now(UTC)).total_seconds(), 0.0), _LONGEST_ASKED_PAUSE)


class Fetcher:
    """One for all feeds of a process, so that feeds of one host share its turns. Safe for threads."""

    def __init__(self, *, host_seconds: float = 1.0) -> None:
        """`host_seconds`: from the end of a request to the beginning of the next one to the same host."""
        self._client: httpx.Client | None = None
        self._host_seconds = host_seconds
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def get(self, address: str, *, etag: str = "", modified: str = "") -> Answer:
        """Ask for what changed since the answer that had this ETag and Last-Modified; follows redirects.

        Raises FeedError where no answer comes, or one beyond the bounds.
        """
        headers = {name: value for name, value in (("if-none-match", etag), ("if-modified-since", modified)) if value}
        asked, moved_to, for_good = address, address, True
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._ask(asked, headers)
            if answer.status not in (301, 302, 303, 307, 308) or "location" not in answer.headers:
                return answer._replace(moved_to=moved_to)
            asked = _redirected(asked, answer.headers["location"])
            for_good = for_good and answer.status in (301, 308)
            moved_to = asked if for_good else moved_to
        raise FeedError(f"{address} redirects more than {_MOST_REDIRECTS} times", hint="give the last address")

    def _ask(self, address: str, headers: dict[str, str]) -> Answer:
        deadline = time.monotonic() + _MOST_SECONDS
        try:
            with self._turn_of(urlsplit(address).netloc), self._stream(address, headers) as said:
                chunks, size = [], 0
                for chunk in said.iter_bytes(2**16):
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > MOST_BYTES:
                        raise FeedError(f"{address} has more than {MOST_BYTES} bytes", hint="no feed is so large")
                    if time.monotonic() > deadline:
                        raise FeedError(f"{address} took longer than {_MOST_SECONDS:.0f} s")
                return Answer(said.status_code, said.headers, b"".join(chunks), address)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise FeedError(f"{address} did not answer: {error or type(error).__name__}") from error

    def _stream(self, address: str, headers: dict[str, str]) -> AbstractContextManager[httpx.Response]:
        with self._lock:
            # Made for the first request: to load the certificates takes a while, and many only follow folders.
            if self._client is None:
                self._client = httpx.Client(
                    headers={"user-agent": USER_AGENT},
                    timeout=httpx.Timeout(30.0, connect=10.0),
                    follow_redirects=False,
                )
        return self._client.stream("GET", address, headers=headers)

    @contextmanager
    def _turn_of(self, host: str) -> Iterator[None]:
        with self._lock:
            turn = self._turns.setdefault(host, _Turn())
        with turn.lock:
            time.sleep(max(0.0, turn.free_at - time.monotonic()))
            try:
                yield
            finally:
                turn.free_at = time.monotonic() + self._host_seconds


def _redirected(address: str, location: str) -> str:
    try:
        target = urljoin(address, location)
        is_web = urlsplit(target).scheme in ("http", "https")
    except ValueError:
        is_web = False
    if not is_web:
        raise FeedError(f"{address} redirects to {location[:200]!r}, which is no web address")
    return target


class _Turn:
    """Whose turn it is with one host, and when the next may begin."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free_at = 0.0
