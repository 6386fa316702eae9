"""Options that several commands share, and the way from options to settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from .settings import Settings

Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="The index: one tenant, agent or feed.")]

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="FOLDER", show_default=False, help="Where everything is kept. [env: GISTREAM_DATA]"),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Only append to the log; the next process that runs indexes it.")
]


def configured(**given: Any) -> Settings:
    """The settings of this process, under the options that were given on the command line (None: not given)."""
    from .settings import Settings

    return Settings(**{name: value for name, value in given.items() if value is not None})
