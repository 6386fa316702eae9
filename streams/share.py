"""What a worker does with the partitions that it was assigned, from one rebalance to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from index.errors import InvalidEvent
from index.metrics import Metrics
from index.types import Accepted

from .ledger import Ledger
from .letter import DeadLetter, Letters
from .register import Incarnation
from .window import Entry, Window
from .wire import Record

ADVANCE_SECONDS: Final = 1.0
"""Between two records of a ledger."""


class Work(Protocol):
    """What is done with the entries of a window, in threads of its own."""

    error: Exception | None
    """What ended it; None while all is well."""

    @property
    def durable(self) -> Mapping[str, int] | None:
        """By namespace the offset up to which it is on the disk; None where all that is finished is."""
        ...

    @property
    def is_held_up(self) -> bool:
        """Whether something that it knows of, and tries again, keeps it from going on."""
        ...

    def start(self) -> None: ...

    def close(self) -> None:
        """Finish what is under way, and let go of everything."""
        ...


@dataclass(frozen=True, slots=True)
class Role:
    """One of the steps that workers share: where its events come from, and what becomes of them."""

    name: str
    topic: Incarnation
    """What it reads."""
    ledgers: Path
    """Folder with a ledger for each partition."""
    read: Callable[[Record, str], Accepted]
    """The event of a record, whose partition has this source name. Raises InvalidEvent."""
    work: Callable[[Window, Collection[int]], Work]
    letters: Letters
    metrics: Metrics

    def ledger(self, partition: int) -> Path:
        """The folder of a partition's ledger."""
        return self.ledgers / self.topic.source(partition)


class Share:
    """The partitions of a worker: their ledgers, what was fetched of them, and the work on it.

    Making one fences whoever held these partitions before.
    """

    def __init__(self, role: Role, partitions: Collection[int]) -> None:
        self._role = role
        self.ledgers = {number: Ledger(role.ledger(number)) for number in sorted(partitions)}
        self.window = Window()
        self.work = role.work(self.window, self.ledgers.keys())
        self._advance_at = 0.0

    def start(self) -> None:
        """Begin to work on what is offered."""
        self.work.start()

    def take(self, record: Record, handle: object) -> None:
        """Put a record of one of these partitions into the window; a poison one among the dead letters first.

        Raises what the dead letters raise.
        """
        source = self._role.topic.source(record.partition)
        accepted: Accepted | None = None
        try:
            accepted = self._role.read(record, source)
        except InvalidEvent as error:
            letter = DeadLetter(
                source,
                "decode",
                str(error),
                record.value or b"",
                position=record.offset,
                key=record.key,
                is_tombstone=record.value is None,
            )
            self._role.letters.put(letter)
            self._role.metrics.count("gistream_events_dead_lettered_total", step="decode")
        size = len(record.value or b"")
        self.window.offer(Entry(record.partition, record.offset, size, accepted, handle))

    def last(self, partition: int) -> int:
        """The last offset of a partition that came, now or to a former worker."""
        return max(self.window.last(partition), self.ledgers[partition].position)

    def settle(self) -> dict[int, list[Entry]]:
        """By partition what may be acknowledged now, in order.

        Raises what ended the work, and WriterFenced where a partition belongs to another worker by now: nothing may be
        acknowledged then.
        """
        if self.work.error is not None:
            raise self.work.error
        done = self.window.take_done()
        for partition in done:
            self.ledgers[partition].check()
        if time.monotonic() >= self._advance_at:
            self._advance()
        return done

    def close(self) -> dict[int, list[Entry]]:
        """Finish what is under way and let go of everything that it writes; the ledgers tell how far it has come.

        Returns what may still be acknowledged, as `settle` does.
        """
        self.work.close()
        done = self.window.take_done()
        self._advance()
        return done

    def _advance(self) -> None:
        for partition, offset in self.window.settled(self.work.durable).items():
            self.ledgers[partition].advance(offset)
        self._advance_at = time.monotonic() + ADVANCE_SECONDS
