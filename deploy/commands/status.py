"""`gistream status`: what every namespace holds, dead letters, what a model has cost, and what is wrong with feeds."""

from __future__ import annotations

from .. import show
from ..options import Data, Json, configured


def status(data: Data = None, json: Json = False) -> None:
    """Show what every namespace holds, how many dead letters wait, what a paid extractor has cost, and how feeds fare.

    Example: gistream status --json
    """
    from index.errors import BrokerError
    from index.home import Home
    from query.status import sizes

    from ..assembly import open_book_if_any
    from ..feed_status import statuses
    from ..letters import count_letters
    from ..model import Bill

    settings = configured(data=data)
    found = {name: held.model_dump() for name, held in sizes(Home(settings.data)).items()}
    letters: int | None = None
    try:
        letters = count_letters(settings)
    except BrokerError as error:
        # The rest is here, whether Kafka answers or not.
        show.message(f"dead letters: {error}")
    with Bill(settings) as bill:
        model = bill.figures()
    with open_book_if_any(settings) as book:
        feeds = statuses(book) if book else {}
    if json:
        told = {"namespaces": found, "dead_letters": letters, "feeds": feeds}
        show.as_json(told | ({"model": model} if model else {}))
        return
    columns = ["namespace", "documents", "passages", "entities", "facts", "snapshot"]
    rows = [[name, *(held[column] for column in columns[1:])] for name, held in found.items()]
    show.as_table(columns, rows, empty="no namespace yet; `gistream ingest NAMESPACE PATH` makes one")
    if letters:
        print(f"{letters} dead letters wait; `gistream dead-letters list` shows why")
    if model and model["held"]:
        print(f"nothing is read at present: {model['held']}")
    if model:
        print(
            f"the model: {model['calls']} calls, {model['input_tokens']} tokens in, {model['output_tokens']} out, "
            f"{model['cost_usd']} USD of {'any' if model['budget_usd'] is None else model['budget_usd']}"
        )
    for name, feed in feeds.items():
        if feed["error"]:
            print(f"feed {name}: {feed['error']}")
