"""Dead letters in a topic of Kafka, one record a letter, so that every worker of an installation has the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple, Self

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError, UnknownTopicOrPartitionError

from index.types import DocumentEvent, Inbox

from .connection import DEAD_LETTERS
from .letter import DeadLetter, no_letter
from .letter_record import (
    dropped_record,
    letter_from,
    letter_key,
    letter_record,
    namespace_of,
    number_of,
    replayed_as,
    replayed_record,
)
from .producer import Producer
from .wire import most_bytes

READ_SECONDS: Final = 10.0
"""How long the broker may be silent before it counts as away."""
_POLL_MILLISECONDS: Final = 200


class _Held(NamedTuple):
    """What is remembered of a letter; the rest is fetched when it is asked for."""

    number: int
    offset: int
    """Of its newest record."""
    namespace: str | None
    is_replayed: bool


class TopicLetters:
    """The letters of the topic `dead-letters`, which has one partition and is compacted. Safe for threads.

    A letter's key says where it came from: written again after a crash, a rebalance or a replay, it is the same letter.
    Its number is the offset of the record that brought it, counted from 1. To drop it is a tombstone for its key, and
    to replay it a record without payload in its place. In memory is what can be told without payloads, some 200 bytes a
    letter, and each question reads on from where the last one ended.
    """

    def __init__(
        self,
        producer: Producer,
        inbox: Callable[[], Inbox],
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        """Connects with the first call. `inbox` gives what accepts replayed events; `clock` microseconds since 1970."""
        self._producer = producer
        self._inbox = inbox
        self._clock = clock
        self._partition = TopicPartition(producer.connection.topic(DEAD_LETTERS), 0)
        self._consumer: Any = None
        self._lock = threading.Lock()
        self._held: dict[bytes, _Held] = {}
        self._waiting: dict[int, bytes] = {}
        """Keys by number, which ascends as records come."""
        self._replayed: dict[int, bytes] = {}

    def put(self, letter: DeadLetter) -> int:
        """See Letters. Where the letter is there already, nothing is stored and its number returned.

        One without a position, which was replayed meanwhile, has come anew. Raises BrokerError where it cannot be kept.
        """
        whole = (letter.key or b"") + letter.payload
        of = letter_key(letter.source, letter.position, letter.namespace, letter.step, whole)
        with self._current():
            held = self._held.get(of)
        if held is not None and (letter.position is not None or not held.is_replayed):
            return held.number
        most = most_bytes(DEAD_LETTERS, self._producer.limits)
        [offset] = self._producer.send([letter_record(of, replace(letter, at=self._clock()), most)])
        return offset + 1

    def count(self) -> int:
        """How many letters wait; reads what is new. Raises BrokerError where the topic cannot be read."""
        with self._current():
            return len(self._waiting)

    def waiting(self, *, limit: int = 100, after: int = 0) -> list[DeadLetter]:
        """See LetterBox. Raises BrokerError where the topic cannot be read."""
        with self._current():
            numbers = islice((number for number in self._waiting if number > after), limit)
            records = self._fetch([number - 1 for number in numbers])
        return [letter_from(record.offset, record.headers, record.value) for record in records]

    def show(self, number: int) -> DeadLetter:
        """See LetterBox. Of a replayed letter the payload is there until the topic is compacted."""
        with self._current():
            held = self._held[self._key(number)]
            records = {record.offset: record for record in self._fetch(sorted({number - 1, held.offset}))}
        if (newest := records.get(held.offset)) is None:
            raise no_letter(number)
        return letter_from(newest.offset, newest.headers, records.get(number - 1, newest).value)

    def remove(self, number: int) -> None:
        """See LetterBox: the topic forgets the payload when it is compacted next."""
        with self._current():
            key = self._key(number)
        self._producer.send([dropped_record(key)])

    def replay(self, number: int, event: DocumentEvent) -> str:
        """See LetterBox. Killed between the two, the letter waits on; to replay it again does no harm."""
        with self._current():
            # A letter that waits has one record, which has its number.
            found = self._fetch([number - 1]) if number in self._waiting else []
        if not found:
            raise no_letter(number)
        [token] = self._inbox().append([event])
        self._producer.send([replayed_record(found[0].key, found[0].headers, number, token)])
        return token

    def erase(self, namespace: str) -> int:
        """See LetterBox. A letter that died before its namespace was known belongs to none."""
        with self._current():
            keys = [key for key, held in self._held.items() if held.namespace == namespace]
        self._producer.send([dropped_record(key) for key in keys])
        return len(keys)

    def close(self) -> None:
        with self._lock:
            if self._consumer is not None:
                self._consumer.close(autocommit=False)
                self._consumer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Nobody else reads meanwhile, and all that was stored before is known."""
        connection = self._producer.connection
        with self._lock, connection.reached("the dead letters could not be read"):
            if self._consumer is None:
                self._consumer = self._open()
            [end] = self._consumer.end_offsets([self._partition], timeout_ms=_milliseconds(READ_SECONDS)).values()
            if self._consumer.position(self._partition) > end:
                # Another topic under the same name: it was deleted and made anew.
                self._consumer.seek_to_beginning(self._partition)
                for known in (self._held, self._waiting, self._replayed):
                    known.clear()
            for record in self._until(end):
                self._learn(record)
            yield

    def _open(self) -> Any:
        consumer = self._producer.connection.opened(
            KafkaConsumer,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            metrics_enabled=False,
        )
        try:
            if not consumer.partitions_for_topic(self._partition.topic):
                raise UnknownTopicOrPartitionError(self._partition.topic)
            consumer.assign([self._partition])
            consumer.seek_to_beginning(self._partition)
        except BaseException:
            consumer.close(autocommit=False)
            raise
        return consumer

    def _until(self, end: int) -> Iterator[Any]:
        """The records from where the consumer stands to `end`."""
        deadline = time.monotonic() + READ_SECONDS
        while self._consumer.position(self._partition) < end:
            for records in self._consumer.poll(timeout_ms=_POLL_MILLISECONDS).values():
                deadline = time.monotonic() + READ_SECONDS
                yield from records
            if time.monotonic() > deadline:
                raise KafkaTimeoutError(f"no record of {self._partition.topic} came for {READ_SECONDS} s")

    def _learn(self, record: Any) -> None:
        if (former := self._held.pop(record.key, None)) is not None:
            (self._replayed if former.is_replayed else self._waiting).pop(former.number)
        if record.value is None:
            return
        number, is_replayed = number_of(record.offset, record.headers), replayed_as(record.headers) is not None
        self._held[record.key] = _Held(number, record.offset, namespace_of(record.headers), is_replayed)
        (self._replayed if is_replayed else self._waiting)[number] = record.key

    def _key(self, number: int) -> bytes:
        for keys in (self._waiting, self._replayed):
            if number in keys:
                return keys[number]
        raise no_letter(number)

    def _fetch(self, offsets: Sequence[int]) -> list[Any]:
        """The records at these offsets, ascending; without those that were compacted away meanwhile."""
        if not offsets:
            return []
        wanted, position = set(offsets), self._consumer.position(self._partition)
        self._consumer.seek(self._partition, offsets[0])
        try:
            return [record for record in self._until(offsets[-1] + 1) if record.offset in wanted]
        finally:
            self._consumer.seek(self._partition, position)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
