"""A random history of many documents in several namespaces: edits, deletes, late versions and repetitions."""

from __future__ import annotations

import random
import threading
from typing import Final

from index.types import DocumentEvent

from .streaming import Stream

NAMESPACES: Final = ("north", "east", "south", "hills")
"""Of four partitions, two hold the first two and the others."""
DOCUMENTS: Final = 6
"""Of each namespace."""
NAMES: Final = ("Anna Ruiz", "Bo Larsen", "Cape Horn", "Delta Works", "Eli Stone", "Fort Nine", "Gale House")
REMEMBERED: Final = 40


class History:
    """Events without end, the same for the same seed.

    A third of the documents has versions of its source, in any order and often more than once; a third has none, so
    that order decides; a third has both. What an explicit version says never changes.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._chance = random.Random(seed)
        self._counted = 0
        self._lately: list[DocumentEvent] = []

    def next(self) -> DocumentEvent:
        if self._lately and self._chance.random() < 0.15:
            return self._chance.choice(self._lately)
        event = self._fresh()
        self._lately = [*self._lately[-REMEMBERED:], event]
        return event

    def _fresh(self) -> DocumentEvent:
        namespace, number = self._chance.choice(NAMESPACES), self._chance.randrange(DOCUMENTS)
        id = f"paper/{number}"
        is_numbered = number % 3 == 0 or (number % 3 == 1 and self._chance.random() < 0.4)
        version = self._chance.randrange(1, 30) if is_numbered else None
        self._counted += 1
        said = random.Random(f"{self._seed} {namespace} {id} {version or -self._counted}")
        if said.random() < 0.25:
            return DocumentEvent(op="delete", namespace=namespace, id=id, version=version)
        sentences = [
            "{} wrote to {} about {} in {}.".format(*said.choices(NAMES, k=3), 1900 + said.randrange(20))
            for _ in range(said.randrange(5))
        ]
        text = " ".join([f"Revision {version or -self._counted} of {namespace} {id}.", *sentences])
        return DocumentEvent(namespace=namespace, id=id, version=version, title=f"Paper {number}", text=text)


class Sending:
    """Sends a history as long as its block lasts, and `least` events at the least; at once no more where that fails."""

    def __init__(self, stream: Stream, history: History, least: int = 100, pause: float = 0.3) -> None:
        """`pause`: seconds between two calls, each with some events."""
        self._stream, self._history, self._least, self._pause = stream, history, least, pause
        self._ending, self._failing = threading.Event(), threading.Event()
        self._flood = 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sending")

    def __enter__(self) -> Sending:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ending.set()
        if kind is not None:
            self._failing.set()
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def flood(self, events: int) -> None:
        """Have so many sent at once; returns when they are acknowledged, which is before they can be indexed."""
        known, self._flood = len(self._stream.sent), events
        self._stream.wait_for_more_than(known + events - 1)

    def _run(self) -> None:
        chance, sent = random.Random(0), 0
        try:
            while not self._failing.is_set() and (sent < self._least or not self._ending.is_set()):
                more, self._flood = self._flood, 0
                batch = [self._history.next() for _ in range(more + chance.randrange(1, 12))]
                self._stream.send(batch)
                sent += len(batch)
                self._ending.wait(self._pause)
        except BaseException as error:
            self._error = error
