"""`gistream delete`: take documents out of a namespace."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import show
from ..options import Data, Json, Namespace, NoWait, configured


def delete(
    namespace: Namespace,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents.")],
    no_wait: NoWait = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Delete documents, with everything that was derived from them, and wait until no answer knows them any more.

    To delete one that is not there is no error: it stays away even where an older version of it comes late.
    Example: gistream delete notes 2024/plan.md
    """
    from index.home import Home
    from query.status import newest
    from streams.events import validated

    from ..assembly import limits
    from ..awaited import Awaited
    from ..sending import sending

    settings = configured(data=data)
    home = Home(settings.data)
    home.incarnation(namespace)
    events = [validated({"op": "delete", "namespace": namespace, "id": id}, limits(settings)) for id in ids]
    awaited = Awaited(home)
    with sending(settings) as line:
        awaited.add(events, line.inbox.append(events))
        if not no_wait:
            with show.progress() as bars:
                bar = bars.add_task("deleting", total=len(events), note="")
                for visible in line.until_visible(awaited):
                    bars.update(bar, completed=visible)
    done = {
        "namespace": namespace,
        "deleted": len(events),
        "token": awaited.last,
        "snapshot": None if no_wait else newest(home, namespace).number,
    }
    if json:
        show.as_json(done)
    else:
        show.pairs(done)
