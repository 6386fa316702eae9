"""How much of the topics is not processed yet, and since when it waits: asked of the cluster, for every worker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from kafka import KafkaConsumer, TopicPartition

from index.errors import WrongTopics

from .cluster import Cluster
from .connection import APPLY, DOCUMENTS, UNDERSTAND, UNDERSTOOD, Connection

READS: Final[Mapping[str, str]] = {UNDERSTAND: DOCUMENTS, APPLY: UNDERSTOOD}
"""Which topic each role of a worker reads."""

_LOOK_SECONDS: Final = 2.0
"""How long the oldest records may take to arrive."""
_LOOK_BYTES: Final = 2**16


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far one role is in one partition."""

    begin: int
    end: int
    """Offset of the next event."""
    committed: int | None
    """Offset of the next event to process, as workers tell the cluster every second or so; None before they did."""
    oldest: int | None
    """When the first event that waits was accepted, in microseconds since 1970; None where none waits."""

    @property
    def next(self) -> int:
        """Where the role goes on."""
        return max(self.begin, self.committed or 0)

    @property
    def waiting(self) -> int:
        """Events to process; too many by those that compaction has removed."""
        return max(0, self.end - self.next)


class LagMeter:
    """Measures again and again over two connections; cheap enough for once a second. For one thread."""

    def __init__(self, connection: Connection) -> None:
        """Raises BrokerError, as `read` does."""
        self._connection = connection
        self._cluster = Cluster(connection)
        self._looked = dict[TopicPartition, tuple[int, int, int | None]]()
        try:
            self._consumer = connection.opened(
                KafkaConsumer,
                enable_auto_commit=False,
                # A record that was removed since is looked for behind.
                auto_offset_reset="earliest",
                max_partition_fetch_bytes=_LOOK_BYTES,
                metrics_enabled=False,
            )
        except BaseException:
            self._cluster.close()
            raise

    def read(self) -> dict[str, dict[int, PartitionLag]]:
        """By role and partition. Raises WrongTopics where a topic is missing, BrokerError where nobody answers."""
        names = {role: self._connection.topic(kind) for role, kind in READS.items()}
        topics = self._cluster.topics(names.values())
        if missing := [name for name in names.values() if name not in topics]:
            raise WrongTopics(f"there is no topic {missing[0]}", hint="make it with `gistream topics create`")
        groups = {role: self._connection.group(role) for role in READS}
        committed = self._cluster.committed([*groups.values()])
        places = {
            role: [TopicPartition(name, one.number) for one in topics[name].partitions] for role, name in names.items()
        }
        extents = self._cluster.extents([place for own in places.values() for place in own])
        lags = {
            role: {
                place: PartitionLag(*extents[place], committed=committed[groups[role]].get(place), oldest=None)
                for place in own
            }
            for role, own in places.items()
        }
        oldest = self._oldest({place: lag for own in lags.values() for place, lag in own.items() if lag.waiting})
        return {
            role: {
                place.partition: PartitionLag(lag.begin, lag.end, lag.committed, oldest.get(place))
                for place, lag in own.items()
            }
            for role, own in lags.items()
        }

    def close(self) -> None:
        self._consumer.close()
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _oldest(self, lags: Mapping[TopicPartition, PartitionLag]) -> dict[TopicPartition, int | None]:
        """When the first record that waits was accepted; it is fetched again only where a role has moved on."""
        known = {place: found for place, found in self._looked.items() if place in lags}
        asked = []
        for place, lag in lags.items():
            position, end, stamp = known.get(place, (-1, -1, None))
            if position != lag.next or (stamp is None and end != lag.end):
                asked.append(place)
        if asked:
            found = self._fetched({place: lags[place].next for place in asked})
            known |= {place: (lags[place].next, lags[place].end, found.get(place)) for place in asked}
        self._looked = known
        return {place: stamp for place, (_, _, stamp) in known.items()}

    def _fetched(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Stamps of the first records from these offsets on, as far as they arrive in time."""
        found = dict[TopicPartition, int]()
        deadline = time.monotonic() + _LOOK_SECONDS
        with self._connection.reached("looking at the oldest events"):
            # All that was ever asked for stays assigned: a consumer whose partitions change forgets where they are.
            if not self._consumer.assignment() >= places.keys():
                self._consumer.assign([*self._consumer.assignment() | places.keys()])
            self._consumer.pause(*self._consumer.assignment())
            for place, offset in places.items():
                self._consumer.seek(place, offset)
                self._consumer.resume(place)
            while len(found) < len(places) and (left := deadline - time.monotonic()) > 0:
                for place, records in self._consumer.poll(timeout_ms=round(left * 1000), max_records=1).items():
                    found.setdefault(place, records[0].timestamp * 1000)
                    self._consumer.pause(place)
        return found


def lag(connection: Connection) -> dict[str, dict[int, PartitionLag]]:
    """Measured once; see LagMeter.read."""
    with LagMeter(connection) as meter:
        return meter.read()
