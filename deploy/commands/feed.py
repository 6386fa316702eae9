"""`gistream feed`: sources that are followed, each with a memory of how far it was understood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import show
from ..exits import Exit
from ..options import Data, Json, NoWait, configured
from .feed_add import add

if TYPE_CHECKING:
    from streams.feeds.book import Entry

    from ..settings import Settings

app = typer.Typer(
    no_args_is_help=True, help="Follow folders, growing files, web feeds and topics; `gistream serve` does too."
)
app.command("add")(add)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a feed.")]

_REMOVAL_SECONDS = 60.0


@app.command("list")
def list_(data: Data = None, json: Json = False) -> None:
    """List the feeds: what each has brought, when it last succeeded, and what is wrong with it.

    Example: gistream feed list --json
    """
    from ..assembly import open_book_if_any
    from ..feed_status import statuses

    with open_book_if_any(configured(data=data)) as book:
        feeds = statuses(book) if book else {}
    if json:
        show.as_json({"feeds": feeds})
        return
    columns = ["name", "kind", "source", "namespace", "documents", "events", "rejected", "succeeded", "error"]
    rows = [[name, *(feed[column] for column in columns[1:])] for name, feed in feeds.items()]
    show.as_table(columns, rows, empty="no feed yet; `gistream feed add` adds one")
    for name, feed in feeds.items():
        if feed["skipped"]:
            what = "passed over" if feed["kind"] == "kafka" else "passes over files of other kinds"
            print(f"{name} {what}: {', '.join(f'{count} {kind}' for kind, count in feed['skipped'].items())}")


@app.command("run")
def run(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these feeds.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Look at each source once, and end.")] = False,
    no_wait: NoWait = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Run the feeds until SIGTERM or Ctrl-C; where no server runs on the same folder, index what they bring.

    Where kafka_bootstrap is set, it goes to Kafka, and workers index it.

    With --once the exit code says whether all sources could be read. Example: gistream feed run --once
    """
    from ..assembly import open_book

    settings = configured(data=data)
    with open_book(settings) as book:
        entries = [book.get(name) for name in names] if names else book.entries()
    if once:
        _once(settings, entries, no_wait, json)
    else:
        _follow(settings, entries, names or [], no_wait)


@app.command("remove")
def remove(
    name: Name,
    delete_documents: Annotated[
        bool, typer.Option("--delete-documents", help="Delete what it brought, too; not known of jsonl and kafka.")
    ] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Forget a feed; its documents stay unless told otherwise. A server that runs it lets it go first.

    Example: gistream feed remove notes --delete-documents
    """
    from ..assembly import open_book
    from ..feed_removal import removed
    from ..sending import sending

    settings = configured(data=data)
    with open_book(settings) as book:
        entry = book.get(name)
        if delete_documents:
            with sending(settings) as line:
                tokens = removed(settings, book, entry, line.inbox, wait_seconds=_REMOVAL_SECONDS)
        else:
            tokens = removed(settings, book, entry, None, wait_seconds=_REMOVAL_SECONDS)
    done = {"name": name, "deleted": len(tokens), "token": tokens[-1] if tokens else None}
    if json:
        show.as_json(done)
    else:
        show.pairs(done)


def _once(settings: Settings, entries: list[Entry], no_wait: bool, json: bool) -> None:
    from index.errors import GistreamError
    from index.home import Home
    from index.metrics import Metrics
    from streams.feeds.deliver import Delivered

    from ..assembly import open_book
    from ..awaited import Awaited
    from ..feeding import Feeding
    from ..letters import refused
    from ..sending import sending

    awaited = Awaited(Home(settings.data))
    brought: dict[str, dict[str, Any]] = {}
    with open_book(settings) as book, sending(settings) as line:
        with Feeding(settings, book, line.inbox, line.letters, Metrics()) as feeding:
            for entry in entries:
                counts = brought[entry.name] = {"events": 0, "rejected": 0, "error": None}

                def count(delivered: Delivered, counts: dict[str, Any] = counts) -> None:
                    awaited.add(delivered.events, delivered.tokens)
                    counts["events"] += len(delivered.events)
                    counts["rejected"] += delivered.rejected

                try:
                    feeding.once(entry, count)
                except (GistreamError, OSError) as error:
                    counts["error"] = str(error)
        for _ in () if no_wait else line.until_visible(awaited):
            pass
        again = [] if no_wait else refused(line.letters, awaited)
    if json:
        show.as_json({"feeds": brought, "token": awaited.last})
    else:
        columns = ["events", "rejected", "error"]
        rows = [[name, *(counts[column] for column in columns)] for name, counts in brought.items()]
        show.as_table(["name", *columns], rows, empty="no feed yet; `gistream feed add` adds one")
    if any(counts["error"] for counts in brought.values()):
        raise typer.Exit(Exit.FEED)
    if again or any(counts["rejected"] for counts in brought.values()):
        show.message("some of the input was rejected; `gistream dead-letters list` shows why")
        raise typer.Exit(Exit.REFUSED)


def _follow(settings: Settings, entries: list[Entry], names: list[str], no_wait: bool) -> None:
    import logging

    from index.metrics import Metrics

    from ..assembly import open_book
    from ..feeding import LOOK_SECONDS, Feeding, check_free
    from ..logs import log_plainly
    from ..sending import sending
    from ..stopping import until_signalled

    log_plainly()
    check_free(settings, entries)
    with (
        until_signalled() as stop,
        open_book(settings) as book,
        sending(settings) as line,
        Feeding(settings, book, line.inbox, line.letters, Metrics(), names=names) as feeding,
    ):
        feeding.start()
        logging.getLogger("gistream").info("following %s", ", ".join(entry.name for entry in entries) or "no feed yet")
        while not stop.wait(LOOK_SECONDS):
            if not no_wait:
                line.attend(())
