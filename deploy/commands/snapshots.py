"""`gistream snapshots`: which snapshots of a namespace can still be read, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .. import show
from ..options import Data, Json, Namespace, configured

if TYPE_CHECKING:
    from query.diff import Change, Changes, Diff

_TEXT_SHOWN = 120
"""Characters of a passage; `--json` has all of it."""


class _ListUnlessTold(TyperGroup):
    """`gistream snapshots NAMESPACE` is short for `gistream snapshots list NAMESPACE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        told = args[:1] and args[0] in (*self.commands, "--help")
        return super().parse_args(ctx, args if told else ["list", *args])


app = typer.Typer(cls=_ListUnlessTold, help="See which snapshots can still be read, and how two of them differ.")

When = Annotated[str, typer.Argument(help="A number, or a moment: the newest snapshot committed until then.")]


@app.command("list")
def list_(
    namespace: Namespace,
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many.")] = 100,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the snapshots of a namespace that can still be read, newest first; `list` may be left out.

    Example: gistream snapshots list notes --limit 10
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


@app.command("diff")
def diff_(
    before: When,
    after: When,
    namespace: Annotated[
        str | None,
        typer.Argument(metavar="[NAMESPACE]", help="May be left out where there is only one.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Name at most so many of each kind.")] = 20,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show which documents, passages, entities and facts came, went or changed from one snapshot to another.

    Example: gistream snapshots diff 41 2026-04-01T12:00:00Z notes
    """
    from index.errors import BadRequest
    from index.history import parse_when
    from index.home import Home
    from query.diff import diff

    home = Home(configured(data=data).data)
    if namespace is None:
        names = home.names()
        if len(names) != 1:
            raise BadRequest(f"there are {len(names)} namespaces", hint="say which: A B NAMESPACE")
        [namespace] = names
    found = diff(home, namespace, parse_when(before), parse_when(after), limit)
    if json:
        show.as_json(found.model_dump(mode="json"))
    else:
        for line in _lines(found):
            print(show.printable(line))


def _lines(found: Diff) -> Iterator[str]:
    yield f"{found.namespace}: from snapshot {found.before} to {found.after}"
    for kind in ("documents", "passages", "entities", "facts"):
        changes: Changes = getattr(found, kind)
        yield f"{kind}: {changes.came} came, {changes.went} went, {changes.changed} changed"
        yield from (f"  {line}" for row in changes.rows for line in _row(kind, row))
        hidden = changes.came + changes.went + changes.changed - len(changes.rows)
        if hidden:
            yield f"  and {hidden} more"


def _row(kind: str, row: Change) -> Iterator[str]:
    of = f"{row.id}  " if kind == "documents" else f"{row.document}  " if row.document else ""
    if row.before == row.after:
        yield f"~ {of}{show.short(row.after or '', _TEXT_SHOWN)}"
        return
    for sign, text in (("-", row.before), ("+", row.after)):
        if text is not None:
            yield f"{sign} {of}{show.short(text, _TEXT_SHOWN)}".rstrip()
