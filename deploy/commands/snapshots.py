"""`gistream snapshots`: the snapshots of a namespace that can still be read."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import show
from ..options import Data, Json, Namespace, configured


def snapshots(
    namespace: Namespace,
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many.")] = 100,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the snapshots of a namespace that can still be read, newest first.

    Example: gistream snapshots notes --limit 10
    """
    from index.home import Home
    from query.status import snapshots as kept

    found = [entry.model_dump(mode="json") for entry in kept(Home(configured(data=data).data), namespace, limit)]
    if json:
        show.as_json({"namespace": namespace, "snapshots": found})
    else:
        columns = ["snapshot", "time", "cause", "documents", "passages", "entities", "facts", "watermark"]
        rows = [[entry[column] for column in columns] for entry in found]
        show.as_table(columns, rows, empty="no snapshots")
