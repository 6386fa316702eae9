"""The `gistream` command: its verbs, and how every one of them ends."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from index.memory import keep_few_arenas

from . import show
from .commands import (
    dead_letters,
    delete,
    demo,
    eval,
    feed,
    ingest,
    rebuild,
    search,
    serve,
    settings,
    snapshots,
    status,
    topics,
    verify,
    worker,
)
from .exits import Exit, exit_of

app = typer.Typer(
    name="gistream",
    help="A live index for retrieval and agent memory: documents come, change and go; an answer is from one snapshot.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for verb in (
    serve.serve,
    worker.worker,
    ingest.ingest,
    search.search,
    delete.delete,
    status.status,
    rebuild.rebuild,
    verify.verify,
    settings.settings,
    eval.eval,
    demo.demo,
):
    app.command()(verb)
app.add_typer(snapshots.app, name="snapshots")
app.add_typer(feed.app, name="feed")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(topics.app, name="topics")


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: that of the process) and return its exit code (exits.py).

    An error raised on purpose, or by the file system, is one line on stderr; anything else is a defect, and shows
    its traceback.
    """
    # Products of a few vectors gain nothing from threads, and waiting for a busy core can cost them tenfold.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_few_arenas()
    try:
        app(args=arguments, prog_name="gistream")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.OK
    except Exception as error:
        code = exit_of(error)
        if code is Exit.DEFECT:
            traceback.print_exc()
        show.message(f"gistream: {_described(error)}")
        return code
    return Exit.OK


def _described(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def commands() -> dict[str, TyperCommand]:
    """Every command by the words it is typed with, like `dead-letters replay`."""
    return dict(_commands(get_command(app), ""))


def _commands(command: object, typed: str) -> Iterator[tuple[str, TyperCommand]]:
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            yield from _commands(below, f"{typed} {name}".strip())
    elif isinstance(command, TyperCommand):
        yield typed, command
