"""`gistream status`: what every namespace holds, and how many dead letters wait."""

from __future__ import annotations

from typing import Any

from .. import show
from ..options import Data, Json, configured


def status(data: Data = None, json: Json = False) -> None:
    """Show what every namespace holds, and how many dead letters wait.

    Example: gistream status --json
    """
    from ..status import status as look

    found: dict[str, Any] = look(configured(data=data).data)
    if json:
        show.as_json(found)
        return
    columns = ["namespace", "documents", "passages", "entities", "facts", "snapshot"]
    rows = [[name, *(counts[column] for column in columns[1:])] for name, counts in found["namespaces"].items()]
    show.as_table(columns, rows, empty="no namespace yet; `gistream ingest NAMESPACE PATH` makes one")
    if found["dead_letters"]:
        print(f"{found['dead_letters']} dead letters wait; `gistream dead-letters list` shows why")
