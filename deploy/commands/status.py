"""`gistream status`: what every namespace holds, how many dead letters wait, and what is wrong with feeds."""

from __future__ import annotations

from .. import show
from ..options import Data, Json, configured


def status(data: Data = None, json: Json = False) -> None:
    """Show what every namespace holds, how many dead letters wait, and what is wrong with feeds.

    Example: gistream status --json
    """
    from index.home import Home
    from query.status import sizes
    from streams.dead_letters import DeadLetters
    from streams.log import Log

    from ..assembly import log_path, open_book_if_any
    from ..feed_status import statuses

    settings = configured(data=data)
    found = {name: held.model_dump() for name, held in sizes(Home(settings.data)).items()}
    letters = 0
    # To look must not make anything: without a log nothing has died.
    if log_path(settings).exists():
        with Log(log_path(settings)) as log:
            letters = DeadLetters(log).count()
    with open_book_if_any(settings) as book:
        feeds = statuses(book) if book else {}
    if json:
        show.as_json({"namespaces": found, "dead_letters": letters, "feeds": feeds})
        return
    columns = ["namespace", "documents", "passages", "entities", "facts", "snapshot"]
    rows = [[name, *(held[column] for column in columns[1:])] for name, held in found.items()]
    show.as_table(columns, rows, empty="no namespace yet; `gistream ingest NAMESPACE PATH` makes one")
    if letters:
        print(f"{letters} dead letters wait; `gistream dead-letters list` shows why")
    for name, feed in feeds.items():
        if feed["error"]:
            print(f"feed {name}: {feed['error']}")
