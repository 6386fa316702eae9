"""From an entry of the book to the feed it stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from index.errors import BadRequest, NotFound

from ..events import DEFAULT_LIMITS, Limits
from .base import Feed
from .book import Entry

if TYPE_CHECKING:
    from ..connection import Connection
    from .fetch import Fetcher

Connect = Callable[[str | None], "Connection"]
"""The cluster at this address, or that of the settings. Raises BadRequest where there is none."""

SHORTEST_INTERVAL: Final = 10.0
"""Seconds between two looks at one address."""

_COMPARING: Final = frozenset({"folder", "rss"})
"""Kinds that delete what their source holds no more; the others only do what a record says."""
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_BOOTSTRAP: Final = re.compile(r"[^\s,]+:\d+(,[^\s,]+:\d+)*")


def build(
    entry: Entry, fetcher: Fetcher, connect: Connect, limits: Limits = DEFAULT_LIMITS, *, settle_seconds: float
) -> Feed:
    """The feed of an entry that `checked` has passed; `settle_seconds` is for folders, 0 takes files as they are.

    Raises what `connect` raises.
    """
    prefix = str(entry.options.get("prefix", ""))
    match entry.kind:
        case "folder":
            from .folder import Folder

            root = Path(entry.source)
            return Folder(root, entry.namespace, prefix=prefix, limits=limits, settle_seconds=settle_seconds)
        case "jsonl":
            from .jsonl import JsonLines

            return JsonLines(Path(entry.source), entry.namespace, limits=limits, grows=True)
        case "rss":
            from .rss import Rss

            return Rss(
                entry.source,
                entry.namespace,
                fetcher,
                prefix=prefix,
                limits=limits,
                interval_seconds=float(entry.options["interval"]),
                on_disappear=entry.options["on_disappear"],
            )
        case "kafka":
            from .mapping import Fields
            from .topic import Topic

            connection = connect(entry.options.get("bootstrap"))
            fields = Fields.parse(entry.options)
            return Topic(connection, entry.source, entry.namespace, fields, prefix=prefix, limits=limits)


def checked(entry: Entry, others: Iterable[Entry], data: Path, connect: Connect) -> Entry:
    """`entry`, whose path is there, and which disturbs neither other feeds nor the data folder.

    Raises NotFound for a path that leads nowhere, BadRequest for the rest.
    """
    match entry.kind:
        case "rss":
            _check_address(entry)
        case "kafka":
            _check_topic(entry, connect)
        case _:
            _check_path(entry, data)
    for other in others:
        is_same_place = (other.namespace, other.options.get("prefix")) == (entry.namespace, entry.options.get("prefix"))
        if is_same_place and _COMPARING.issuperset((entry.kind, other.kind)):
            raise BadRequest(
                f"the feed {other.name} writes to the namespace {entry.namespace} under the same ids",
                hint="give this one a --prefix of its own, so that neither deletes documents of the other",
            )
    return entry


def _check_address(entry: Entry) -> None:
    try:
        address = urlsplit(entry.source)
        is_web = address.scheme in ("http", "https") and bool(address.hostname)
    except ValueError:
        is_web = False
    if not is_web:
        raise BadRequest(f"{entry.source!r} is no web address", hint="write it as https://example.org/feed.xml")
    if not float(entry.options["interval"]) >= SHORTEST_INTERVAL:
        raise BadRequest(f"an interval is at least {SHORTEST_INTERVAL:.0f} s")


def _check_topic(entry: Entry, connect: Connect) -> None:
    from ..connection import DEAD_LETTERS, DOCUMENTS, UNDERSTOOD
    from .mapping import Fields

    Fields.parse(entry.options)
    if not _TOPIC.fullmatch(entry.source):
        raise BadRequest(f"{entry.source!r} is no name of a topic", hint="1 to 249 of A-Z a-z 0-9 . _ -")
    address = entry.options.get("bootstrap")
    if not _BOOTSTRAP.fullmatch(connect(address).bootstrap):
        raise BadRequest(f"{address!r} is no address of brokers", hint="write HOST:PORT, several with commas")
    if address is None and entry.source in map(connect(None).topic, (DOCUMENTS, UNDERSTOOD, DEAD_LETTERS)):
        # What the feed sends would be what it reads, for ever.
        raise BadRequest(f"the topic {entry.source} is our own", hint="name a topic that others write to")


def _check_path(entry: Entry, data: Path) -> None:
    path = Path(entry.source)
    if entry.kind == "jsonl" and not path.is_file():
        raise NotFound(f"there is no file {path}", hint="name a file of JSON lines; it may be empty")
    if entry.kind == "folder" and not path.is_dir():
        raise NotFound(f"there is no folder {path}", hint="name a folder of text, Markdown, HTML or PDF files")
    if entry.kind == "folder" and data.resolve().is_relative_to(path.resolve()):
        # What the index writes would be a change in the folder, which it would look at, and so on for ever.
        raise BadRequest(f"the data folder {data} lies in {path}", hint="keep it outside of what it indexes")
