"""The understanding stage: what a model has to say about an event's passages is bought, kept, and then told of."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import count, takewhile
from typing import Final

from index.errors import GistreamError
from index.home import Home
from index.metrics import Metrics
from index.types import Accepted

from .ahead import ROUNDS
from .batch import is_fault_of_the_event
from .buy import Begun, Buyer
from .extract.base import PaidExtractor
from .pipeline import Pipeline
from .trouble import Troubles, pause
from .window import Entry, Window

MOST_AT_ONCE: Final = 256
"""Events of all namespaces that are begun between two looks at what is understood; and of one namespace in all."""
MOST_EMBEDDED: Final = 64
"""Passages that are embedded between two such looks, where no extractor bounds them."""

_IDLE_SECONDS = 0.2

Publish = Callable[[Sequence[Accepted]], None]
"""Tells the appliers of events, in this order; returns once that is durable, and raises GistreamError where not."""

_log = logging.getLogger(__name__)


class Preparer:
    """Understands the events of a window. Namespaces take turns, and the events of each are told of in their order.

    As many passages are read at a time as the extractor reads, whichever events they are of; whoever waits for a slow
    one holds up its namespace only. Where nothing is kept of what a pipeline understands, since its models cost
    nothing, the applier does it all and events just pass. Fit for one thread: its own, once `start` was called.
    """

    def __init__(self, home: Home, window: Window, pipeline: Pipeline, publish: Publish, metrics: Metrics) -> None:
        self.error: Exception | None = None
        """What stopped the thread; None while all is well."""
        self.troubles = Troubles()
        """What keeps single namespaces from being understood; they are tried again while the others go on."""
        self._window = window
        self._publish = publish
        self._buyer = Buyer(home, pipeline, metrics)
        extractor = pipeline.extractor
        self._most = ROUNDS * extractor.concurrency if isinstance(extractor, PaidExtractor) else MOST_EMBEDDED
        self._begun: defaultdict[str, deque[Begun]] = defaultdict(deque)
        """Events whose passages are being read, or are read and wait for those before them."""
        self._turns = count(1)
        self._last_turn: dict[str, int] = {}
        """Of namespaces with events waiting."""
        self._unsent: list[tuple[str, list[Entry]]] = []
        """Understood and not told of, by namespace."""
        self._failures = 0
        """Of telling, since it last succeeded."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gistream-preparer", daemon=True)

    @property
    def durable(self) -> None:
        """What was told of is on the brokers' disks."""
        return None

    @property
    def is_held_up(self) -> bool:
        """Whether a model or the broker is away."""
        return bool(self.troubles) or self._failures > 0

    def start(self) -> None:
        """Work in a thread of its own until `close`; what stops it is kept in `error`."""
        self._thread.start()

    def close(self) -> None:
        """Finish what is being told of, and let go; what was bought is kept, and what was not told of comes again.

        Raises StoreError and OSError where something cannot be kept.
        """
        self._stopping.set()
        self._window.wake()
        if self._thread.is_alive():
            self._thread.join()
        self._buyer.close()

    def step(self) -> bool:
        """Begin what there is room for, and tell of what is understood; False if there was nothing to tell."""
        self._begin()
        if not self._unsent:
            self._unsent = self._understood()
        return bool(self._unsent) and self._tell()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if not self.step():
                    # An event that comes, and a passage that is read, end this.
                    self._window.wait(_IDLE_SECONDS)
        except Exception as error:
            self.error = error

    def _begin(self) -> None:
        """Have passages read of one event of each namespace after the other, until enough are under way."""
        # Whoever had its turn first is first again: those that come later are not to wait until it has nothing left.
        turns = self._last_turn = {name: self._last_turn.get(name, 0) for name in self._window.names()}
        names = deque(sorted((name for name in turns if not self.troubles.waits(name)), key=turns.__getitem__))
        room = self._most - sum(begun.under_way for line in self._begun.values() for begun in line)
        left = MOST_AT_ONCE
        while names and room > 0 and left > 0:
            name = names.popleft()
            if (entry := self._next(name)) is None:
                continue
            try:
                begun = self._buyer.begin(name, entry, self._window.wake)
            except Exception as error:
                self._failed(name, entry, error)
                continue
            self._begun[name].append(begun)
            turns[name] = next(self._turns)
            room -= begun.under_way
            left -= 1
            names.append(name)

    def _next(self, name: str) -> Entry | None:
        """The next event of a namespace that may be begun."""
        line = self._begun.get(name, ())
        if len(line) >= MOST_AT_ONCE:
            return None
        unsent = sum(len(entries) for sent, entries in self._unsent if sent == name)
        return next(iter(self._window.peek(name, unsent + len(line), 1)), None)

    def _understood(self) -> list[tuple[str, list[Entry]]]:
        """Of every namespace the events at its head about which everything is kept now."""
        found = []
        for name, line in list(self._begun.items()):
            if not (done := self._kept(name, line)):
                continue
            for _ in done:
                line.popleft()
            if not line:
                del self._begun[name]
            found.append((name, done))
            self.troubles.over(name)
        return found

    def _kept(self, name: str, line: Sequence[Begun]) -> list[Entry]:
        ready = list(takewhile(lambda begun: begun.is_read, line))
        try:
            if not ready and (error := line[0].error) is not None:
                raise error
            self._buyer.keep(name, ready)
        except Exception as error:
            if len(ready) > 1 and is_fault_of_the_event(error):
                # One of them is at fault: its turn comes when it is the first.
                return self._kept(name, ready[:1])
            self._failed(name, line[0].entry, error)
            return []
        return [begun.entry for begun in ready]

    def _failed(self, name: str, entry: Entry, error: Exception) -> None:
        """An event cannot be understood, now or ever: its namespace waits, or it is given up.

        What was begun behind it is begun again, and what was bought is kept.
        """
        if is_fault_of_the_event(error):
            # The applier reads it by the fallback, or refuses it: then its token is settled too.
            entry.is_given_up = True
            _log.warning("an event of namespace %s is applied without being understood: %r", name, error)
        else:
            self.troubles.note(name, error)
        self._begun.pop(name, None)
        self._buyer.call_off(name, error)

    def _tell(self) -> bool:
        """Tell of what is understood. While nobody hears it, nothing that comes later may be told of before."""
        told = [entry.accepted for _, entries in self._unsent for entry in entries if entry.accepted is not None]
        try:
            self._publish(told)
        except GistreamError as error:
            if not error.recoverable:
                raise
            seconds = pause(self._failures)
            _log.warning("%d understood events are sent again in %.1f s: %s", len(told), seconds, error)
            self._failures += 1
            self._stopping.wait(seconds)
            return True
        self._failures = 0
        for name, entries in self._unsent:
            self._window.finish(name, len(entries))
        self._unsent = []
        return True
