"""What is sent to Kafka: events into `documents`, and any records in an order that no failure can break."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from kafka import KafkaProducer
from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError, RetriableError, UnknownTopicOrPartitionError
from kafka.producer.future import FutureRecordMetadata

from index.errors import BrokerError, BrokerUnavailable, InvalidEvent
from index.token import Token
from index.types import DocumentEvent

from .connection import DEAD_LETTERS, DOCUMENTS, Connection
from .events import DEFAULT_LIMITS, Limits
from .register import Register
from .wire import document_record, key_partition, most_bytes

DELIVERY_SECONDS: Final = 30.0
"""How long a record may take to be stored, the client's own retries included."""
BLOCK_SECONDS: Final = 10.0
"""How long a call may wait to learn where the partitions of a topic are."""
_REQUEST_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 5.0
_BATCH_BYTES: Final = 2**16
"""Records of one partition that travel together; a larger record goes alone."""
_OVERHEAD_BYTES: Final = 256
"""More than what a batch adds to key, value and headers of its only record."""
_SHOWN: Final = 80


class Outgoing(NamedTuple):
    """One record to be sent."""

    kind: str
    """Which of our topics: DOCUMENTS, UNDERSTOOD or DEAD_LETTERS of connection.py."""
    partition: int | None
    """None: where its key belongs."""
    key: bytes | None
    value: bytes | None
    """None is a tombstone, which needs a key."""
    headers: Sequence[tuple[str, bytes]] = ()

    @property
    def size(self) -> int:
        """Bytes that its topic must allow."""
        headers = sum(len(name.encode()) + len(value) for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers + _OVERHEAD_BYTES


class Producer:
    """Stores records durably: idempotent, acknowledged by all replicas that are in sync. Safe for threads.

    **No holes.** Of the records that one call sends to one partition, a prefix is stored: never one of them while one
    before it failed. Idempotence does not give that by itself. It keeps a batch that is repeated from being stored
    twice; but once the client gives a batch up, it sends those behind it under a new identity. So the first failure
    ends the client: what it still held is dropped, whoever gave it, and the next call gets a new client. A record that
    was given up may be stored all the same, and once more when it is sent again: its readers must not mind.
    """

    def __init__(self, connection: Connection, limits: Limits = DEFAULT_LIMITS) -> None:
        """Connects with the first call. `limits` are those that the topics were made for."""
        self.connection = connection
        self.limits = limits
        self._line: _Line | None = None
        self._opening = threading.Lock()
        self._refused: tuple[float, BrokerError] | None = None
        self._is_closed = False

    def send(self, records: Sequence[Outgoing]) -> list[int]:
        """Store the records, in order for each partition; block until all are; return their offsets.

        Raises InvalidEvent for a record that is too large for its topic, and nothing is sent then; BrokerUnavailable,
        or another BrokerError, where not all could be stored: some may have been, and sending them again does no harm.
        """
        for record in records:
            if record.size > (most := most_bytes(record.kind, self.limits)):
                named = (record.key or b"").decode(errors="replace")[:_SHOWN]
                reason = f"document {named!r}: {record.size} bytes as a record of Kafka, the limit is {most}"
                raise InvalidEvent(reason, hint="split the document")
        if not records:
            return []
        line = self._connected()
        try:
            return line.send(self.connection, records)
        except KafkaError as error:
            with self._opening:
                if self._line is line:
                    self._line = None
            line.close()
            # What others see of a failure is only that the client has ended.
            cause = line.failure or error
            found = self.connection.failure(cause, f"{len(records)} events could not be stored")
            raise type(found)(found.message, hint=f"{_HARMLESS}; {found.hint}") from cause

    def close(self) -> None:
        """Wait a little for what is being sent, and end; sending again raises BrokerUnavailable."""
        with self._opening:
            line, self._line, self._is_closed = self._line, None, True
        if line is not None:
            line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> _Line:
        """The client, a new one where there is none. Who waited while another tried in vain does not try again."""
        came = time.monotonic()
        with self._opening:
            if self._is_closed:
                raise BrokerUnavailable("nothing is sent any more: this process is stopping", hint="send it again")
            if self._refused is not None and self._refused[0] > came:
                refused = self._refused[1]
                raise type(refused)(refused.message, hint=refused.hint)
            if self._line is None:
                try:
                    self._line = _Line(self.connection, most_bytes(DEAD_LETTERS, self.limits))
                except BrokerError as error:
                    self._refused = time.monotonic(), error
                    raise
            return self._line


class KafkaInbox(Producer):
    """Accepts events by storing them in `documents`; an `Inbox`, but that a failed call may have stored some."""

    def __init__(self, connection: Connection, register: Register, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(connection, limits)
        self.register = register

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        """See Inbox: one token per event, like `documents-2:1007`. Raises as `send` does.

        InvalidEvent is for metadata that is no JSON, too, and nothing is stored then.
        """
        topic = self.register.documents
        records = []
        for event in events:
            key, value = document_record(event)
            records.append(Outgoing(DOCUMENTS, key_partition(key, topic.partitions), key, value))
        offsets = self.send(records)
        return [
            str(Token(topic.source(record.partition or 0), offset))
            for record, offset in zip(records, offsets, strict=True)
        ]


class _Line:
    """One client of kafka-python, until its first failure."""

    def __init__(self, connection: Connection, most: int) -> None:
        self.failure: Exception | None = None
        self._client = connection.opened(
            KafkaProducer,
            acks="all",
            enable_idempotence=True,
            batch_size=_BATCH_BYTES,
            max_request_size=most,
            max_block_ms=round(BLOCK_SECONDS * 1000),
            request_timeout_ms=round(_REQUEST_SECONDS * 1000),
            delivery_timeout_ms=round(DELIVERY_SECONDS * 1000),
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )

    def send(self, connection: Connection, records: Sequence[Outgoing]) -> list[int]:
        """Raises KafkaError, after which this client stores nothing more."""
        try:
            # What a topic lacks is known before anything is sent.
            for kind in {record.kind for record in records}:
                topic, used = connection.topic(kind), {record.partition for record in records if record.kind == kind}
                if lacking := used - self._client.partitions_for(topic) - {None}:
                    raise UnknownTopicOrPartitionError(f"{topic} has no partition {min(lacking)}")
            waiting = []
            for record in records:
                future = self._client.send(
                    connection.topic(record.kind), record.value, record.key, [*record.headers], record.partition
                )
                future.add_errback(self._end)
                waiting.append(future)
            return self._offsets(waiting)
        except KafkaError as error:
            self._end(error)
            raise

    def close(self) -> None:
        try:
            self._client.close(timeout=_CLOSE_SECONDS)
        except KafkaTimeoutError:
            self._end(IllegalStateError("the client was closed"))

    def _offsets(self, waiting: Sequence[FutureRecordMetadata]) -> list[int]:
        # The client forgets its own deadline while it has lost its broker before it got an identity.
        deadline = time.monotonic() + DELIVERY_SECONDS + _REQUEST_SECONDS
        offsets = [future.get(timeout=max(0.0, deadline - time.monotonic())).offset for future in waiting]
        if min(offsets) < 0:
            raise RetriableError("a record that was stored, but nobody knows where")
        return offsets

    def _end(self, error: Exception) -> None:
        """Drop what is not sent yet, before the client can send it.

        Runs in the client's own thread when a batch has failed: that thread sends nothing more once it was told to
        stop. `close(timeout=0)`, which is meant for this, waits for the other batches first and gives up.
        """
        if self.failure is None:
            self.failure = error
        self._client._sender.force_close()


_HARMLESS: Final = "Some of them may have been stored all the same, and sending all of them again does no harm"
