"""`gistream worker`: the steps of the index as processes that share a stream in Kafka."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from .. import show
from ..options import Data, configured


def worker(
    role: Annotated[
        Literal["understand", "apply", "all"],
        typer.Option(help="What it does with the stream: understand documents, apply them to the index, or both."),
    ] = "all",
    from_start: Annotated[
        bool,
        typer.Option("--from-start", help="Read the topics from their beginning again; what is held is skipped."),
    ] = False,
    unsupervised: Annotated[
        bool, typer.Option("--unsupervised", help="Run one role in this very process; others start it again.")
    ] = False,
    leashed: Annotated[bool, typer.Option("--leashed", hidden=True, help="End with the standard input.")] = False,
    data: Data = None,
) -> None:
    """Index what comes through Kafka; SIGTERM or Ctrl-C finishes the batch under way, and nothing accepted is lost.

    Start as many as are needed, on any machine that shares the data folder: they share the partitions of the topics
    that `gistream topics create` makes. A worker that ends is started again. Example: gistream worker --role all
    """
    from index.errors import BadRequest
    from streams.cluster import identities
    from streams.connection import APPLY, UNDERSTAND
    from streams.register import Register

    from ..assembly import connection, log_path
    from ..logs import log_plainly
    from ..stopping import until_signalled
    from ..supervisor import on_a_leash, supervise, worker_command

    settings = configured(data=data)
    if unsupervised or leashed:
        if role == "all":
            raise BadRequest("one process has one role", hint="choose --role understand or --role apply")
        if from_start:
            raise BadRequest(
                "a worker that others start again would begin anew each time", hint="leave one of them out"
            )
        if leashed:
            on_a_leash()
        from ..worker import work

        work(settings, role)
        return
    log_plainly()
    # What is wrong from the beginning does not get better by trying again and again.
    settings.data.mkdir(parents=True, exist_ok=True)
    register = Register.open(settings.data, connection(settings), identities)
    roles = [UNDERSTAND, APPLY] if role == "all" else [role]
    # The supervisor stays small: what only its children need is not loaded for it.
    if log_path(settings).exists():
        from ..lag import left_in_log

        if left := left_in_log(settings):
            show.message(
                f"{left} events wait in the log of this folder, which nobody reads while Kafka is set; "
                "run `gistream serve` without it until they are applied"
            )
    if from_start:
        from index.home import Home
        from streams.roles import start_over

        for one in roles:
            start_over(Home(settings.data), one, register)
    with until_signalled() as stop:
        code = supervise({one: worker_command(one, ["--data", str(settings.data)]) for one in roles}, stop)
    raise typer.Exit(code)
