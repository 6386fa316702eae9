"""Waiting until events that were accepted are visible, whichever log or topic accepted them."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from index.home import Home
from index.token import Token
from index.types import DocumentEvent
from streams.position import NOTHING, positions

POLL_SECONDS: Final = 0.02

Places = dict[str, "array[int]"]
"""Positions by source, each in order."""


def _nobody(names: Collection[str]) -> None:
    """Other processes index what was accepted."""


class Awaited:
    """The events that a command sent, and how far the newest snapshots are with them; 16 bytes an event."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._places: Places = {}
        self._waiting: dict[str, Places] = {}
        """By namespace; it leaves when its last event is visible."""
        self._count = 0
        self._done = 0
        self.last: str | None = None
        """The token of the last of them."""

    def add(self, events: Sequence[DocumentEvent], tokens: Sequence[str]) -> None:
        """Wait for these too; those of one source come in its order."""
        for event, token in zip(events, tokens, strict=True):
            source, position = Token.parse(token)
            for places in (self._places, self._waiting.setdefault(event.namespace, {})):
                places.setdefault(source, array("q")).append(position)
            self._count += 1
            self.last = token

    def __len__(self) -> int:
        return self._count

    def __contains__(self, token: Token) -> bool:
        accepted = self._places.get(token.source, array("q"))
        at = bisect_left(accepted, token.position)
        return at < len(accepted) and accepted[at] == token.position

    def settle(self, token: Token) -> None:
        """Wait no more for this event, which no snapshot will reflect."""
        for name, places in self._waiting.items():
            waiting = places.get(token.source, array("q"))
            at = bisect_left(waiting, token.position)
            if at < len(waiting) and waiting[at] == token.position:
                del waiting[at]
                self._done += 1
                if not any(places.values()):
                    del self._waiting[name]
                return

    def namespaces(self) -> Collection[str]:
        """Those that still have events to wait for."""
        return self._waiting.keys()

    def visible(self) -> int:
        """How many of them a snapshot reflects by now, and how many were settled."""
        seen = 0
        for name, places in list(self._waiting.items()):
            held = positions(self._home, name)
            visible = sum(bisect_right(waiting, held.get(source, NOTHING)) for source, waiting in places.items())
            if visible < sum(map(len, places.values())):
                seen += visible
            else:
                self._done += visible
                del self._waiting[name]
        return self._done + seen

    def until_visible(self, attend: Callable[[Collection[str]], None] = _nobody) -> Iterator[int]:
        """Wait until every event is in a snapshot; comes back with the number of those that are.

        `attend` is called between two looks with the namespaces that are still waited for, and may raise.
        """
        while (visible := self.visible()) < len(self):
            attend(self.namespaces())
            yield visible
            time.sleep(POLL_SECONDS)
        yield visible
