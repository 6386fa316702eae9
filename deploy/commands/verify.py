"""`gistream verify`: compare a namespace with a clean rebuild of its documents."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Annotated

import typer

from .. import show
from ..exits import Exit
from ..options import Data, Json, Namespace, configured


def verify(
    namespace: Namespace,
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many differences.")] = 100,
    data: Data = None,
    json: Json = False,
) -> None:
    """Compare a namespace with a clean rebuild of its documents; exit code 1 where they differ.

    Lines with - are in the index only, lines with + in the rebuild only. Example: gistream verify notes
    """
    from index.home import Home
    from streams.rebuild import verify as run

    from ..assembly import build_pipeline

    settings = configured(data=data)
    with show.stages() as progress:
        pipeline = build_pipeline(settings)
        differences = run(Home(settings.data), namespace, pipeline, partial(progress, "rebuilding"))
        shown = list(islice(differences, limit))
        count = len(shown) + sum(1 for _ in differences)
    if json:
        listed = [
            {"where": found.where, "key": found.key, "index": found.left, "rebuild": found.right} for found in shown
        ]
        show.as_json({"namespace": namespace, "equal": not count, "differences": count, "shown": listed})
    else:
        for found in shown:
            print(show.printable(str(found)))
        same = f"{namespace} equals a clean rebuild of its documents"
        print(f"{namespace} differs from a clean rebuild in {count} places" if count else same)
    if count:
        raise typer.Exit(Exit.REFUSED)
