"""`gistream feed add`: a new source, and what its kind has to be told of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import typer

from .. import show
from ..options import Data, Json, configured

_INTERVAL: Final = 900.0
_FOR_RSS: Final = ("interval", "on_disappear")
_FOR_KAFKA: Final = ("bootstrap", "id", "text", "title", "version", "event_time", "metadata", "deleted")
_KAFKA: Final = "Kafka"
"""Panel of the options of one kind."""

Many = list[str] | None


def add(
    kind: Annotated[
        Literal["folder", "jsonl", "rss", "kafka"],
        typer.Argument(metavar="folder|jsonl|rss|kafka", help="What kind of source it is."),
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A folder, a file of JSON lines that grows, an RSS or Atom address, or a topic of foreign JSON.",
        ),
    ],
    namespace: Annotated[str, typer.Option(metavar="NAMESPACE", help="The index that its documents go to.")],
    name: Annotated[str | None, typer.Option(help="What to call it; else its folder, file, host or topic.")] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Put before every document id; else NAME/ for rss, and nothing.")
    ] = None,
    interval: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Between two looks at an rss address; else 900.")
    ] = None,
    on_disappear: Annotated[
        Literal["keep", "delete"] | None,
        typer.Option(
            help="What becomes of an entry that an rss feed lists no more; most list only the newest, so else keep."
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            rich_help_panel=_KAFKA,
            help="Brokers of the topic's cluster; else those of kafka_bootstrap, whose security holds for both.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(metavar="PATH", rich_help_panel=_KAFKA, help="Field of the document's id; else the record's key."),
    ] = None,
    text: Annotated[
        Many,
        typer.Option(
            metavar="PATH", rich_help_panel=_KAFKA, help="Field of the text, like after.body; several are joined."
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="PATH", rich_help_panel=_KAFKA, help="Field of the title.")
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", rich_help_panel=_KAFKA, help="Field of a number that orders a document's records."
        ),
    ] = None,
    event_time: Annotated[
        str | None, typer.Option(metavar="PATH", rich_help_panel=_KAFKA, help="Field of its time, in ISO 8601.")
    ] = None,
    metadata: Annotated[
        Many,
        typer.Option(
            metavar="PATH",
            rich_help_panel=_KAFKA,
            help="Field that becomes metadata, once for each; * is all that no other option reads, and the default.",
        ),
    ] = None,
    deleted: Annotated[
        str | None,
        typer.Option(
            metavar="PATH=VALUE",
            rich_help_panel=_KAFKA,
            help="What a record says whose document is gone. One without a value always deletes that of its key.",
        ),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Add a feed; `gistream serve` takes it up within a second, `gistream feed run` runs it without a server.

    Example: gistream feed add folder ~/notes --namespace notes
    """
    from functools import partial

    from index.home import Home
    from streams.feeds.book import Entry
    from streams.feeds.kinds import checked

    from ..assembly import foreign_connection, open_book

    settings = configured(data=data)
    Home(settings.data).pointer(namespace)
    if kind in ("folder", "jsonl"):
        # Whoever runs it may have another working folder.
        source = str(Path(source).expanduser().resolve())
    name = name or _name_from(source, kind)
    given = {
        "prefix": prefix,
        "interval": interval,
        "on_disappear": on_disappear,
        "bootstrap": bootstrap,
        "id": id,
        "text": text,
        "title": title,
        "version": version,
        "event_time": event_time,
        "metadata": metadata,
        "deleted": _rule(deleted),
    }
    options = _options(kind, name, {option: value for option, value in given.items() if value is not None})
    entry = Entry(name, kind, source, namespace, options)
    with open_book(settings) as book:
        entry = book.add(checked(entry, book.entries(), settings.data, partial(foreign_connection, settings)))
    done = {"name": entry.name, "kind": kind, "source": source, "namespace": namespace, **options}
    if json:
        show.as_json(done)
    else:
        show.pairs(done)


def _options(kind: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of the options that were given, with the defaults of the kind. Raises BadRequest."""
    from index.errors import BadRequest

    if kind != "rss" and any(option in given for option in _FOR_RSS):
        raise BadRequest("--interval and --on-disappear are for rss", hint="the others tell of what goes by themselves")
    if kind != "kafka" and (foreign := [option for option in _FOR_KAFKA if option in given]):
        raise BadRequest(f"--{foreign[0].replace('_', '-')} is for kafka", hint="the others need no mapping")
    if kind == "jsonl":
        if "prefix" in given:
            raise BadRequest("--prefix is not for jsonl", hint="its lines say their ids themselves")
        return {}
    if kind == "rss":
        return {"prefix": f"{name}/", "interval": _INTERVAL, "on_disappear": "keep", **given}
    return {"prefix": "", **given}


def _rule(written: str | None) -> list[str] | None:
    """PATH=VALUE as a pair. Raises BadRequest."""
    from index.errors import BadRequest

    if written is None:
        return None
    path, sign, value = written.partition("=")
    if not sign:
        raise BadRequest(f"--deleted {written!r} is no rule", hint="write PATH=VALUE, like op=d")
    return [path, value]


def _name_from(source: str, kind: str) -> str:
    match kind:
        case "rss":
            name = urlsplit(source).hostname or ""
        case "kafka":
            name = source
        case _:
            name = Path(source).stem
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:63] or kind
