"""Options that several commands share, and the way from options to settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from .settings import Settings

Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="The index: one tenant, agent or feed.")]

Data = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", show_default=False, help="Where everything is kept. (env: GISTREAM_DATA)"),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Only store it in the log or in Kafka; whoever runs next indexes it.")
]


def configured(**options: object) -> Settings:
    """The settings that hold, with the options of a command (None: not given) before everything else."""
    # The settings cost half of what help may take to show.
    from .settings import load

    return load(options=options)
