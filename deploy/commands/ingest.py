"""`gistream ingest`: read documents from a folder, a file or a pipe, and wait until they are in the index."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import show
from ..exits import Exit
from ..options import Data, Json, Namespace, NoWait, configured

if TYPE_CHECKING:
    from streams.apply import Applied
    from streams.events import Limits
    from streams.feeds.base import Feed


def ingest(
    namespace: Namespace,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH|-",
            help="A folder of text, Markdown, HTML and PDF files, a .jsonl file, or - for JSON lines from stdin.",
        ),
    ],
    no_wait: NoWait = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Index documents; what is refused goes to the dead letters, and the exit code is 1 then.

    A JSON line is {"id", "text"} and optionally op, title, metadata, event_time, version and a namespace of its own.
    Where a server runs on the same folder, or workers beside Kafka, they do the work and this command waits. With a
    paid extractor the bar shows calls, tokens and cost; passages that the model could not read are read by the rules
    until it can.
    Example: gistream ingest notes ./notes
    """
    from index.home import Home

    from ..assembly import limits
    from ..awaited import Awaited
    from ..intake import Intake
    from ..letters import refused
    from ..model import Bill, as_figures, as_note
    from ..sending import sending

    settings = configured(data=data)
    home = Home(settings.data)
    feed = _feed(namespace, path, limits(settings))
    # With a bad name every single line would become a dead letter.
    home.pointer(namespace)
    awaited = Awaited(home)
    started = time.monotonic()
    events = passages = degraded = 0

    def count(_: str, applied: Applied) -> None:
        nonlocal events, passages, degraded
        events += applied.events
        passages += applied.extracted + applied.reused
        degraded += applied.degraded

    with sending(settings, count) as line, Bill(settings) as bill, show.progress() as bars:
        intake = Intake(feed, line.inbox, line.letters, namespace, awaited)
        bar = bars.add_task("indexing", total=None, note="")

        def draw(visible: int) -> None:
            rate = passages / (time.monotonic() - started)
            notes = [f"{rate:.0f} passages/s" if passages else "", as_note(bill.since())]
            bars.update(bar, completed=visible, total=intake.events, note=", ".join(filter(None, notes)))

        for _ in intake:
            if not no_wait:
                line.attend(())
                draw(min(events, intake.events))
        if not no_wait:
            for visible in line.until_visible(awaited):
                draw(visible)
        rejected = intake.rejected + (0 if no_wait else len(refused(line.letters, awaited)))
        spent = bill.since()
    done: dict[str, object] = {
        "namespace": namespace,
        "events": intake.events + intake.rejected,
        "rejected": rejected,
        "indexed": None if no_wait else intake.events + intake.rejected - rejected,
        "seconds": round(time.monotonic() - started, 2),
        "skipped": dict(feed.skipped),
        "token": awaited.last,
    }
    if json:
        show.as_json(done | {"model": as_figures(spent) | {"degraded": degraded}} if spent.calls else done)
    else:
        skipped = {"skipped": ", ".join(f"{count} {kind}" for kind, count in feed.skipped.items()) or None}
        show.pairs(done | skipped | ({"model": as_note(spent)} if spent.calls else {}))
    if degraded:
        show.message(f"the model could not read {degraded} passages; the rules did, and a running server tries again")
    if rejected:
        show.message("some of the input was rejected; `gistream dead-letters list` shows why")
        raise typer.Exit(Exit.REFUSED)


def _feed(namespace: str, path: str, limits: Limits) -> Feed:
    from streams.feeds.folder import Folder
    from streams.feeds.jsonl import JsonLines

    from ..intake import standard_input

    if path == "-":
        return JsonLines(standard_input(), namespace, limits=limits)
    source = Path(path)
    if source.is_dir():
        return Folder(source, namespace, limits=limits)
    return JsonLines(source, namespace, limits=limits)
