"""`gistream serve`: the HTTP interface, with the index in the same process or beside workers."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Data, configured


def serve(
    data: Data = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on. (env: GISTREAM_HOST)")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port; 0 takes a free one. (env: GISTREAM_PORT)")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only answer questions; another process may write.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Write even though another process holds the lock: it is fenced.")
    ] = False,
    no_feeds: Annotated[
        bool, typer.Option("--no-feeds", help="Do not run the feeds that were added. (env: GISTREAM_RUN_FEEDS)")
    ] = False,
) -> None:
    """Serve the HTTP interface; SIGTERM or Ctrl-C finishes the batch under way, and nothing acknowledged is lost.

    Where kafka_bootstrap is set, what it accepts goes to Kafka, and `gistream worker` indexes it.
    Example: gistream serve --port 8080
    """
    from index.errors import BadRequest

    from ..server import serve as run

    settings = configured(data=data, host=host, port=port, run_feeds=False if no_feeds else None)
    if settings.kafka_bootstrap is None:
        from ..embedded import Embedded

        run(Embedded(settings, read_only=read_only, take_over=take_over))
        return
    from ..streaming import Streaming

    if take_over:
        hint = "leave --take-over out; with Kafka the workers write, and each takes over what it is assigned"
        raise BadRequest("a service beside workers writes no index", hint=hint)
    run(Streaming(settings, read_only=read_only))
