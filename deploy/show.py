"""What a command prints: JSON for programs and tables for people on stdout, messages and progress on stderr."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from index.clock import from_microseconds

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PIPED_WIDTH = 160
"""Columns of a table that goes into a file or a pipe."""


def as_json(value: Any) -> None:
    """One JSON document; what JSON does not know (times, paths) is written as its text."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def as_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """A table; numbers are right-aligned, None is a dash. Without rows the sentence `empty`."""
    # Rich costs a third of the start of a command, so only those that draw pay for it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    if not listed:
        print(empty)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, first in zip(columns, listed[0], strict=True):
        is_number = isinstance(first, int | float)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in listed:
        table.add_row(*(Text("-" if value is None else printable(str(value))) for value in row))
    Console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(table)


def pairs(values: Mapping[str, object]) -> None:
    """Names and values, one pair a line."""
    width = max(map(len, values), default=0)
    for name, value in values.items():
        print(f"{name:<{width}}  {'-' if value is None else printable(str(value))}")


def message(text: str) -> None:
    """One line for people, on stderr."""
    print(printable(text).replace("\n", " "), file=sys.stderr)


def progress() -> Progress:
    """Progress bars on stderr; nothing is drawn where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        disable=not console.is_terminal,
    )


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each stage of long work, drawn by a function of the stage's name, how much is done, and of how much."""
    with progress() as bars:
        drawn: dict[str, TaskID] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in drawn:
                drawn[stage] = bars.add_task(stage, note="")
            bars.update(drawn[stage], completed=done, total=total)

        yield advance


def printable(text: str) -> str:
    """`text` without control characters but line ends and tabs: what a document says must not steer a terminal."""
    return "".join("�" if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t" else c for c in text)


def short(text: str, characters: int) -> str:
    """`text` on one line, cut where it is longer."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def when(microseconds: int | None) -> str | None:
    """A time in microseconds since 1970 as ISO 8601 in UTC, to the second."""
    if microseconds is None:
        return None
    return from_microseconds(microseconds).isoformat(timespec="seconds")
