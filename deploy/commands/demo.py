"""`gistream demo`: a small story, indexed while it changes."""

from __future__ import annotations

import typer

from ..exits import Exit


def demo() -> None:
    """Index a small story while it changes, ask it questions, and compare the index with a clean rebuild.

    It works in a temporary folder and takes less than two minutes. Example: gistream demo
    """
    from ..demo.run import run

    if run():
        raise typer.Exit(Exit.REFUSED)
