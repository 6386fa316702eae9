"""What a reader makes anew behind the questions: full bases and stores, or all of it where most numbers are dead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from .graph.rows import SparseRows
from .manifest import Manifest
from .snapshot import Snapshot
from .spoken import Spoken
from .vectors import VectorTable

View = SparseRows | VectorTable
Part = TypeVar("Part", Snapshot, Spoken)
Place = tuple[type[Snapshot | Spoken], str]
"""Where a view is: the part of a snapshot, and the field."""
Made = Mapping[Place, View] | Snapshot
"""Renewed views by place, or the whole, with numbers for what lives alone."""

FEW_DEAD = 100_000
"""Dead numbers that may always stay."""

_TURN = threading.Lock()
"""All readers of a process renew one after the other: it takes memory and a processor."""


class Renewal:
    """Renews one reader's snapshots in a thread of its own. One thread at a time calls it.

    A view that is renewed within a swap would hold it up for as long as it takes to copy the view: a second for tens of
    millions of entries. Here it is made from a snapshot, which never changes, while later ones are swapped in.
    """

    def __init__(self, load: Callable[[Manifest], Snapshot]) -> None:
        """`load` opens a manifest with numbers of its own."""
        self._load = load
        self._of: Snapshot | None = None
        self._made: Future[Made] = Future()

    def begin(self, snapshot: Snapshot) -> None:
        """Start renewing what is worn, unless something is under way."""
        if self._of is not None:
            return
        worn = {name: view for name, view in views(snapshot).items() if view.worn}
        if is_crowded(snapshot):
            self._start(snapshot, partial(self._load, snapshot.manifest))
        elif worn:
            self._start(snapshot, lambda: {name: view.renewed() for name, view in worn.items()})

    def adopt(self, snapshot: Snapshot) -> Snapshot:
        """The same snapshot upon what is renewed by now; or an older one, with fewer numbers, to go on from.

        What was made of another beginning is of no use. Raises what stopped the renewal.
        """
        of = self._of
        if of is None or not self._made.done():
            return snapshot
        self._of = None
        made = self._made.result()
        if snapshot.kinds is not of.kinds:
            return snapshot
        if isinstance(made, Snapshot):
            return made
        now, then = views(snapshot), views(of)
        # A view that another kind took the place of meanwhile needs nothing.
        changes = {name: upon(now[name], base, then[name]) for name, base in made.items() if name in now}
        return _with(replace(snapshot, spoken=_with(snapshot.spoken, changes)), changes)

    def _start(self, of: Snapshot, work: Callable[[], Made]) -> None:
        self._of, self._made = of, Future()
        threading.Thread(target=_work, args=(work, self._made), name="gistream-renewal", daemon=True).start()


def is_crowded(snapshot: Snapshot) -> bool:
    """Whether more numbers belong to things that are gone than to living ones: each takes some 40 bytes a swap."""
    kinds, counts = snapshot.kinds, snapshot.manifest.counts
    given = len(kinds.passages) + len(kinds.entities) + len(kinds.facts)
    return given > 2 * (counts.passages + counts.entities + counts.facts) + FEW_DEAD


def views(snapshot: Snapshot) -> dict[Place, View]:
    """The views of a snapshot that can be renewed."""
    named = (
        ((type(part), field.name), getattr(part, field.name))
        for part in (snapshot, snapshot.spoken)
        for field in fields(part)
    )
    return {place: view for place, view in named if isinstance(view, SparseRows | VectorTable)}


def _with(part: Part, changes: Mapping[Place, View]) -> Part:
    mine: dict[str, Any] = {name: view for (kind, name), view in changes.items() if kind is type(part)}
    return replace(part, **mine)


def _work(work: Callable[[], Made], made: Future[Made]) -> None:
    try:
        with _TURN:
            made.set_result(work())
    except BaseException as error:
        made.set_exception(error)


def upon(view: View, base: View, of: View) -> View:
    """A view on `base`, which is `of` renewed; the view came from `of`."""
    if isinstance(view, SparseRows) and isinstance(base, SparseRows) and isinstance(of, SparseRows):
        return view.onto(base, of)
    assert isinstance(view, VectorTable) and isinstance(base, VectorTable) and isinstance(of, VectorTable)
    return view.onto(base, of)
