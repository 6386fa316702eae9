"""`gistream topics`: the topics of Kafka that events go through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .. import show
from ..exits import Exit
from ..options import Data, Json, configured

if TYPE_CHECKING:
    from streams.topics import Layout

    from ..settings import Settings

app = typer.Typer(
    no_args_is_help=True, help="Make the topics of Kafka that events go through, check and describe them."
)


@app.command("create")
def create(json: Json = False) -> None:
    """Make the topics that are missing; those that are there stay as they are.

    The settings kafka_partitions and kafka_replication say how. Example: gistream topics create
    """
    from streams.topics import ALL
    from streams.topics import create as make

    from ..assembly import connection

    settings = configured()
    reached = connection(settings)
    made = make(reached, _layout(settings))
    names = [reached.topic(kind) for kind in ALL]
    if json:
        show.as_json({"created": made, "there": [name for name in names if name not in made]})
    else:
        show.pairs({name: "created" if name in made else "is there; see `gistream topics check`" for name in names})


@app.command("check")
def check(data: Data = None, json: Json = False) -> None:
    """Compare the topics with what is needed and with what the data folder knows; exit code 1 where they differ.

    Every finding is one line, with what to do. Example: gistream topics check
    """
    from streams.topics import check as compare

    from ..assembly import connection

    settings = configured(data=data)
    findings = compare(connection(settings), settings.data, _layout(settings))
    if json:
        show.as_json({"right": not findings, "findings": [finding._asdict() for finding in findings]})
    else:
        for finding in findings:
            print(show.printable(str(finding)))
        if not findings:
            print("the topics are as they must be")
    if findings:
        raise typer.Exit(Exit.REFUSED)


@app.command("describe")
def describe(json: Json = False) -> None:
    """Show the topics: partitions, where they are, settings that matter, who reads them and how far they are.

    Example: gistream topics describe --json
    """
    from streams.topics import describe as ask

    from ..assembly import connection

    described = ask(connection(configured()))
    if json:
        show.as_json(described)
        return
    columns = ["partition", "leader", "replicas", "in_sync", "begin", "end", "committed", "waiting", "oldest"]
    for topic in described["topics"]:
        print(f"{topic['topic']}  " + "  ".join(f"{name}={value}" for name, value in topic["settings"].items()))
        rows = [
            [show.when(one.get(column)) if column == "oldest" else _cell(one.get(column)) for column in columns]
            for one in topic["partitions"]
        ]
        show.as_table(columns, rows, empty="no partitions")
        print()
    for group in described["groups"]:
        print(f"{group['group']}  waiting={group['waiting']}")
        rows = [[one["id"], one["host"], " ".join(one["partitions"])] for one in group["members"]]
        show.as_table(["worker", "host", "partitions"], rows, empty="nobody is in the group")


def _cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


def _layout(settings: Settings) -> Layout:
    from streams.topics import Layout

    from ..assembly import limits

    return Layout(
        settings.kafka_partitions, settings.kafka_replication, settings.kafka_retention_hours, limits(settings)
    )
