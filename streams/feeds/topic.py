"""A foreign topic of Kafka as a feed: its records are mapped to events, partition by partition."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final, Self

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, UnknownTopicOrPartitionError, for_code

from index.errors import BrokerError, FeedError, InvalidEvent, NotFound

from ..connection import Connection
from ..events import DEFAULT_LIMITS, Limits
from .base import MAX_PAYLOAD, Memory, Rejected, Step
from .mapping import Fields

LOST: Final = "offsets deleted before they were read"
"""What `skipped` calls them: the topic's retention was quicker than this feed."""

_LOOK_SECONDS: Final = 0.5
_LONGEST_WAIT: Final = 60.0
"""Seconds after which a poll is worth while anyway: it sees new partitions, and a topic that was created anew."""
_ANSWER_SECONDS: Final = 15.0
"""How long a broker may say nothing about what it is known to hold."""
_FETCH_BYTES: Final = 4 * 2**20
"""Of records held at a time; a larger one comes alone."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Place:
    """How far a topic has been read."""

    topic: str
    """Its id: one that was created anew under the same name has another."""
    offsets: dict[int, int] = field(default_factory=dict)
    """By partition the offset of the next record."""
    lost: int = 0
    """Offsets that were deleted before they were read, since the feed was added; compaction makes them more than the
    records that were behind them.
    """

    @classmethod
    def parse(cls, cursor: str) -> Self:
        """The place that `cursor` tells; one before every topic where it is empty."""
        told: dict[str, Any] = json.loads(cursor) if cursor else {"topic": "", "offsets": {}, "lost": 0}
        return cls(told["topic"], {int(number): offset for number, offset in told["offsets"].items()}, told["lost"])

    def __str__(self) -> str:
        return json.dumps({"topic": self.topic, "offsets": self.offsets, "lost": self.lost})


class Topic:
    """Every record is a document, or deletes one; what stands where in it, `fields` says.

    One partition is read after the other, each in the order of its records, up to where it ended when the look began.
    Records of transactions that were not committed are none. Needs no consumer group: the cursor holds the offsets.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        namespace: str,
        fields: Fields,
        *,
        prefix: str = "",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.name = topic
        self.skipped: Mapping[str, int] = {}
        self._connection = connection
        self._namespace = namespace
        self._fields = fields
        self._prefix = prefix
        self._limits = limits
        self._read: dict[int, int] = {}
        """By partition where the last poll stopped."""

    def poll(self, memory: Memory) -> Iterator[Step]:
        """See Feed. Raises NotFound where there is no such topic."""
        try:
            yield from self._steps(memory)
        except (KafkaError, BrokerError) as error:
            reason = f"the topic {self.name} at {self._connection.bootstrap} cannot be read"
            hint = "see whether the broker is up, and check its address, security, user and certificates"
            raise FeedError(f"{reason}: {type(error).__name__}: {error}", hint=hint) from error

    def wait(self, stop: Event) -> None:
        """Until there are records behind those that were read."""
        until = time.monotonic() + _LONGEST_WAIT
        partitions = [TopicPartition(self.name, number) for number in self._read]
        try:
            with closing(self._consumer()) as consumer:
                while not stop.wait(_LOOK_SECONDS) and time.monotonic() < until:
                    ends = consumer.end_offsets(partitions, timeout_ms=_ANSWER_SECONDS * 1000)
                    if any(ends[partition] != self._read[partition.partition] for partition in partitions):
                        return
        except (KafkaError, BrokerError) as error:
            # The poll that follows tells what is wrong, if it still is.
            _log.info("the topic %s cannot be looked at: %s", self.name, error)

    def _steps(self, memory: Memory) -> Iterator[Step]:
        topic, numbers = self._described()
        place = _Place.parse(memory.cursor)
        if place.topic != topic:
            if place.topic:
                _log.warning("the topic %s was created anew; it is read from its beginning", self.name)
            place = _Place(topic, lost=place.lost)
        with closing(self._consumer()) as consumer:
            partitions = [TopicPartition(self.name, number) for number in numbers]
            firsts = consumer.beginning_offsets(partitions)
            ends = consumer.end_offsets(partitions)
            for partition in partitions:
                number, first, end = partition.partition, firsts[partition], ends[partition]
                place.offsets[number] = self._start(place, number, first, end)
                if place.offsets[number] < end:
                    yield from self._partition(consumer, partition, place, end)
        self._read = dict(place.offsets)
        self.skipped = {LOST: place.lost} if place.lost else {}
        # Behind the last record there may be offsets without one, and a partition that lost its records brought none.
        if str(place) != memory.cursor:
            yield Step(cursor=str(place))

    def _start(self, place: _Place, number: int, first: int, end: int) -> int:
        """Where a partition that holds `first` up to `end` is read on; what is lost is told."""
        offset = place.offsets.get(number)
        if offset is None:
            return first
        if offset < first:
            message = "the topic %s, partition %d: offsets %d to %d were deleted before they were read"
            _log.warning(message, self.name, number, offset, first - 1)
            place.lost += first - offset
            return first
        if offset > end:
            # What now stands at the offsets that were read before is unknown; to hear a record twice does no harm.
            message = "the topic %s, partition %d ends at %d, and was read up to %d before; it is read again"
            _log.warning(message, self.name, number, end, offset)
            return first
        return offset

    def _partition(self, consumer: Any, partition: TopicPartition, place: _Place, end: int) -> Iterator[Step]:
        """The records of one partition before `end`; `place` moves with them."""
        number = partition.partition
        consumer.assign([partition])
        consumer.seek(partition, place.offsets[number])
        answered = time.monotonic()
        # The position, as the last offsets may be those of no record: of a transaction's end, or compacted away.
        while (position := consumer.position(partition)) < end:
            records = consumer.poll(timeout_ms=1000).get(partition, ())
            if consumer.position(partition) != position:
                answered = time.monotonic()
            elif time.monotonic() > answered + _ANSWER_SECONDS:
                reason = f"the topic {self.name}, partition {number} gave nothing for {_ANSWER_SECONDS:.0f} s"
                raise FeedError(f"{reason} at offset {position}", hint="see whether the broker is up")
            for record in records:
                if record.offset >= end:
                    break
                place.offsets[number] = record.offset + 1
                yield self._step(record, str(place))
                answered = time.monotonic()
        place.offsets[number] = end

    def _step(self, record: Any, cursor: str) -> Step:
        try:
            event = self._fields.event(
                record.key, record.value, self._namespace, prefix=self._prefix, limits=self._limits
            )
        except InvalidEvent as error:
            payload = (record.key if record.value is None else record.value) or b""
            if len(payload) > self._limits.event_bytes:
                payload = payload[:MAX_PAYLOAD]
            place = f"partition {record.partition}, offset {record.offset}"
            return Step(rejected=(Rejected(self.name, place, str(error), payload),), cursor=cursor)
        return Step((event,), cursor=cursor)

    def _described(self) -> tuple[str, list[int]]:
        """Id and partitions of the topic. Raises NotFound."""
        with closing(self._connection.opened(KafkaAdminClient)) as admin:
            [topic] = admin.describe_topics([self.name])
        error = for_code(topic["error_code"])
        if error is UnknownTopicOrPartitionError:
            hint = "create it, or correct the feed's source"
            raise NotFound(f"there is no topic {self.name} at {self._connection.bootstrap}", hint=hint)
        if topic["error_code"]:
            raise error(f"{topic['name']} cannot be described")
        return str(topic["topic_id"]), sorted(one["partition_index"] for one in topic["partitions"])

    def _consumer(self) -> KafkaConsumer:
        return self._connection.opened(
            KafkaConsumer,
            enable_auto_commit=False,
            # Where to go on when records are gone is decided here, and told.
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            isolation_level="read_committed",
            fetch_max_bytes=_FETCH_BYTES,
            max_partition_fetch_bytes=_FETCH_BYTES,
        )
