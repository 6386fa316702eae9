"""What a reader makes anew behind the questions: bases and stores that are full, adopted with what came meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import fields, replace
from typing import Any

from .graph.rows import SparseRows
from .snapshot import Snapshot
from .vectors import VectorTable

View = SparseRows | VectorTable

_TURN = threading.Lock()
"""All readers of a process renew one after the other: it takes memory and a processor."""


class Renewal:
    """Renews the worn views of one reader's snapshots in a thread of its own. One thread at a time calls it.

    A view that is renewed within a swap would hold it up for as long as it takes to copy the view: a second for tens of
    millions of entries. Here it is made from a snapshot, which never changes, while later ones are swapped in.
    """

    def __init__(self) -> None:
        self._of: Snapshot | None = None
        self._made: Future[Mapping[str, View]] = Future()

    def begin(self, snapshot: Snapshot) -> None:
        """Start renewing what is worn, unless that is under way."""
        worn = {name: view for name, view in views(snapshot).items() if view.worn}
        if self._of is None and worn:
            self._of, self._made = snapshot, Future()
            threading.Thread(target=_renew, args=(worn, self._made), name="gistream-renewal", daemon=True).start()

    def adopt(self, snapshot: Snapshot) -> Snapshot:
        """The same snapshot upon what is renewed by now.

        It follows from the one that was begun with, or from another beginning: then what was made is of no use. Raises
        what stopped the renewal.
        """
        of = self._of
        if of is None or not self._made.done():
            return snapshot
        self._of = None
        made = self._made.result()
        if snapshot.kinds is not of.kinds:
            return snapshot
        now, then = views(snapshot), views(of)
        changes: dict[str, Any] = {name: _onto(now[name], base, then[name]) for name, base in made.items()}
        return replace(snapshot, **changes)


def views(snapshot: Snapshot) -> dict[str, View]:
    """The views of a snapshot that can be renewed, by field."""
    named = ((field.name, getattr(snapshot, field.name)) for field in fields(snapshot))
    return {name: view for name, view in named if isinstance(view, SparseRows | VectorTable)}


def _renew(worn: Mapping[str, View], made: Future[Mapping[str, View]]) -> None:
    try:
        with _TURN:
            made.set_result({name: view.renewed() for name, view in worn.items()})
    except BaseException as error:
        made.set_exception(error)


def _onto(view: View, base: View, of: View) -> View:
    if isinstance(view, SparseRows) and isinstance(base, SparseRows) and isinstance(of, SparseRows):
        return view.onto(base, of)
    assert isinstance(view, VectorTable) and isinstance(base, VectorTable) and isinstance(of, VectorTable)
    return view.onto(base, of)
