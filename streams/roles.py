"""The two roles of a worker: understanding what was accepted, and applying what was understood."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from index.home import Home
from index.metrics import Metrics
from index.token import Token
from index.types import Accepted

from .applier import Applier, Options
from .arrived import Arrived
from .connection import APPLY, UNDERSTAND, UNDERSTOOD
from .events import Limits
from .extract.base import PaidExtractor
from .extract.unbought import Unbought
from .ledger import Ledger
from .letter import Letters
from .pipeline import Pipeline
from .prepare import Preparer
from .producer import Outgoing, Producer
from .register import Register
from .share import Role, Work
from .window import Window
from .wire import Record, document_event, document_record, namespace_partition, understood_event, understood_headers


def understanding(
    home: Home,
    register: Register,
    pipeline: Pipeline,
    letters: Letters,
    producer: Producer,
    metrics: Metrics,
    limits: Limits,
) -> Role:
    """Reads `documents`, has everything kept that a model has to say, and tells the appliers by way of `understood`."""
    documents, understood = register.documents, register.understood

    def read(record: Record, source: str) -> Accepted:
        event = document_event(record.key, record.value, limits)
        return Accepted(record.offset, record.timestamp * 1000, event, {source: record.offset})

    def outgoing(accepted: Accepted) -> Outgoing:
        key, value = document_record(accepted.event)
        [(source, offset)] = accepted.places.items()
        partition = namespace_partition(accepted.event.namespace, understood.partitions)
        headers = understood_headers(Token(source, offset), accepted.stamp, documents.version(offset))
        return Outgoing(UNDERSTOOD, partition, key, value, headers)

    def publish(batch: Sequence[Accepted]) -> None:
        producer.send([outgoing(accepted) for accepted in batch])

    def work(window: Window, partitions: Collection[int]) -> Work:
        return Preparer(home, window, pipeline, publish, metrics)

    return Role(UNDERSTAND, documents, ledgers(home, UNDERSTAND, register), read, work, letters, metrics)


def applying(
    home: Home,
    register: Register,
    pipeline: Pipeline,
    letters: Letters,
    limits: Limits,
    **options: Unpack[Options],
) -> Role:
    """Reads `understood` and commits its events. It pays no model, except to read degraded passages again: what a paid
    extractor has to say is known by now, and where it is not, the passage is read by the fallback until then.
    """
    topic, extractor = register.understood, pipeline.extractor
    known = replace(pipeline, extractor=Unbought(extractor)) if isinstance(extractor, PaidExtractor) else pipeline

    def read(record: Record, source: str) -> Accepted:
        return understood_event(record, source, limits)

    def work(window: Window, partitions: Collection[int]) -> Work:
        return Applying(home, Arrived(window, topic, partitions), letters, known, pipeline, **options)

    return Role(APPLY, topic, ledgers(home, APPLY, register), read, work, letters, options.get("metrics") or Metrics())


def ledgers(home: Home, role: str, register: Register) -> Path:
    """The folder of a role's ledgers."""
    # Of another `understood` nothing was told yet, so that one has ledgers of its own.
    return home.data / "ledgers" / (role if role == APPLY else f"{role}-{register.understood.number}")


def start_over(home: Home, role: str, register: Register) -> None:
    """Have a role's topic read from its beginning again, by whoever is assigned its partitions next; what is held
    already is skipped, and nothing that was paid for is bought again.
    """
    topic = register.understood if role == APPLY else register.documents
    for partition in range(topic.partitions):
        Ledger(ledgers(home, role, register) / topic.source(partition), from_start=True)


class Applying(Applier):
    """An applier as the work of a share. The partition is its right to write: it passes the locks of former workers."""

    def __init__(
        self,
        home: Home,
        arrived: Arrived,
        letters: Letters,
        pipeline: Pipeline,
        mending: Pipeline,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(home, arrived, letters, pipeline, take_over=True, mending=mending, **options)
        self._arrived = arrived

    @property
    def durable(self) -> Mapping[str, int]:
        """See Work."""
        return self._arrived.durable_positions

    @property
    def is_held_up(self) -> bool:
        """See Work."""
        return bool(self.troubles)
