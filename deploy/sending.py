"""Where the events of a command go, and who makes them visible: the log and a runner, or Kafka and its workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import show
from .assembly import open_log
from .letters import Refusals

if TYPE_CHECKING:
    from index.types import Inbox
    from streams.apply import Applied
    from streams.letter import LetterBox

    from .awaited import Awaited
    from .settings import Settings
    from .stream import Stream

FIRST_LOOK_SECONDS: Final = 2.0
"""How long a command waits before it asks whether anybody is at work; most writes are visible by then."""


@dataclass(frozen=True, slots=True)
class Sending:
    """What a command sends to, as long as it runs."""

    inbox: Inbox
    letters: LetterBox
    attend: Callable[[Collection[str]], None]
    """Called again and again while it waits, with the namespaces that it waits for; raises what keeps them."""

    def until_visible(self, awaited: Awaited) -> Iterator[int]:
        """Wait until every event is in a snapshot or among the dead letters; comes back with the number of those."""
        refusals = Refusals(self.letters, awaited)

        def attend(names: Collection[str]) -> None:
            self.attend(names)
            refusals.look()

        return awaited.until_visible(attend)


@contextmanager
def sending(
    settings: Settings, on_batch: Callable[[str, Applied], None] = lambda namespace, applied: None
) -> Iterator[Sending]:
    """As the settings say. `on_batch` is told of what a runner of this process applies.

    Raises StoreError where the log does not open, and later BrokerError where Kafka cannot be used.
    """
    if settings.kafka_bootstrap is None:
        from streams.dead_letters import DeadLetters

        from .indexing import Indexing

        with open_log(settings) as log, Indexing(settings, log, on_batch) as indexing:
            yield Sending(log, DeadLetters(log), indexing.attend)
        return
    from .stream import Stream

    with Stream(settings) as stream:
        yield Sending(stream, stream.letters, Onlooker(stream).attend)


class Onlooker:
    """Waits for workers elsewhere, and says once on stderr where there are none."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._look_at: float | None = None
        self._looked = False

    def attend(self, names: Collection[str]) -> None:
        """Look whether anybody is at work, once. Raises BrokerError where the cluster does not tell."""
        if self._look_at is None:
            self._look_at = time.monotonic() + FIRST_LOOK_SECONDS
        if self._looked or not names or time.monotonic() < self._look_at:
            return
        self._looked = True
        if idle := self._stream.idle_roles():
            roles = " and ".join(idle)
            show.message(f"no worker has the role {roles}; what was sent waits in Kafka until `gistream worker` runs")
