"""What is sent to Kafka: tokens, order without holes, and what happens when it fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import NodeNotReadyError
from kafka.future import Future
from kafka.protocol.producer import ProduceRequest

from index.errors import BrokerRefused, BrokerUnavailable, InvalidEvent, WrongTopics
from index.token import Token
from index.types import DocumentEvent
from streams import producer as producing
from streams.connection import DEAD_LETTERS, DOCUMENTS, UNDERSTOOD, Connection
from streams.events import encode
from streams.producer import KafkaInbox, Outgoing, Producer
from streams.wire import key_partition, most_bytes
from tests.broker.cluster import Cluster

from .kafka_topics import LIMITS, registered, values


@pytest.fixture
def connection(kafka: Cluster, kafka_prefix: str) -> Connection:
    return Connection(kafka.bootstrap, prefix=kafka_prefix)


@pytest.fixture
def inbox(connection: Connection, tmp_path: Path) -> Iterator[KafkaInbox]:
    with KafkaInbox(connection, registered(connection, tmp_path), LIMITS) as inbox:
        yield inbox


def event(id: str, text: str = "", **fields: Any) -> DocumentEvent:
    return DocumentEvent(namespace="notes", id=id, text=text, **fields)


def test_tokens_name_the_places_of_the_events(inbox: KafkaInbox) -> None:
    events = [event(f"d{number % 7}", f"text {number}") for number in range(40)]
    tokens = [Token.parse(token) for token in (*inbox.append(events[:25]), *inbox.append(events[25:]))]
    topic = inbox.register.documents
    stored = {partition: values(inbox.connection, DOCUMENTS, partition) for partition in range(topic.partitions)}
    for sent, token in zip(events, tokens, strict=True):
        partition = topic.partition(token.source)
        assert partition == key_partition(f"notes/{sent.id}".encode(), 3)
        assert stored[partition][token.position] == encode(sent)
    assert sum(map(len, stored.values())) == 40
    assert inbox.append([]) == []


def test_a_delete_without_version_is_a_tombstone(inbox: KafkaInbox) -> None:
    token = Token.parse(inbox.append([event("gone", op="delete")])[0])
    partition = inbox.register.documents.partition(token.source)
    assert partition is not None
    assert values(inbox.connection, DOCUMENTS, partition) == [None]


def test_many_callers_are_served_side_by_side(inbox: KafkaInbox) -> None:
    answers = dict[int, list[str]]()

    def append(caller: int) -> None:
        answers[caller] = inbox.append([event(f"{caller}/{number}") for number in range(20)])

    threads = [threading.Thread(target=append, args=(caller,)) for caller in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    tokens = [token for answer in answers.values() for token in answer]
    assert len(set(tokens)) == len(tokens) == 160


def test_an_event_that_is_too_large_is_refused_before_anything_is_sent(inbox: KafkaInbox) -> None:
    most = most_bytes(DOCUMENTS, LIMITS)
    with pytest.raises(InvalidEvent, match=rf"document 'notes/large': \d+ bytes .* limit is {most}\. split"):
        inbox.append([event("small"), event("large", "x" * most)])
    with pytest.raises(InvalidEvent, match=r"document notes/odd cannot be written as JSON"):
        inbox.append([event("small"), event("odd", metadata={"x": {1, 2}})])
    # The largest that passes is stored, and so are those after it.
    [*_, token] = inbox.append([event("fits", "x" * (most - 400)), event("small")])
    assert Token.parse(token).position in (0, 1)
    assert sum(len(values(inbox.connection, DOCUMENTS, partition)) for partition in range(3)) == 2


def test_records_go_where_they_are_told_to(inbox: KafkaInbox) -> None:
    records = [
        Outgoing(UNDERSTOOD, 2, b"a", b"1", [("origin", b"documents-0:1")]),
        Outgoing(UNDERSTOOD, 2, b"b", None),
        Outgoing(UNDERSTOOD, 0, None, b"2"),
        Outgoing(DEAD_LETTERS, None, b"k", b"3"),
    ]
    assert inbox.send(records) == [0, 1, 0, 0]
    assert values(inbox.connection, UNDERSTOOD, 2) == [b"1", None]
    assert values(inbox.connection, DEAD_LETTERS, 0) == [b"3"]


def test_a_missing_topic_is_named_in_time(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, inbox: KafkaInbox
) -> None:
    with pytest.raises(WrongTopics, match=r"has no partition 7\. .*topics create"):
        inbox.send([Outgoing(UNDERSTOOD, 0, b"k", b"v"), Outgoing(UNDERSTOOD, 7, b"k", b"v")])
    assert values(connection, UNDERSTOOD, 0) == []
    monkeypatch.setattr(producing, "BLOCK_SECONDS", 0.5)
    elsewhere = Connection(connection.bootstrap, prefix=f"{connection.prefix}other-")
    with Producer(elsewhere, LIMITS) as producer, pytest.raises(BrokerUnavailable, match=r"topics check"):
        producer.send([Outgoing(UNDERSTOOD, 0, b"k", b"v")])


def test_nobody_hears_of_a_record_before_it_is_stored(inbox: KafkaInbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producing, "KafkaProducer", _Held)
    offsets = list[int]()
    with Producer(inbox.connection, LIMITS) as producer:
        sending = threading.Thread(target=lambda: offsets.extend(producer.send([Outgoing(UNDERSTOOD, 1, b"k", b"v")])))
        sending.start()
        try:
            assert _Held.asked.wait(30)
            sending.join(0.5)
            assert sending.is_alive() and not offsets, "it was told before it was stored"
        finally:
            _Held.released.set()
            sending.join(30)
    assert offsets == [0]


class _Held(KafkaProducer):  # type: ignore[misc]
    """Hands no batch to its broker until it is released."""

    asked, released = threading.Event(), threading.Event()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._deliver = self._sender._client.send
        self._sender._client.send = self._hold

    def _hold(self, node: int, request: Any, **options: Any) -> Any:
        if isinstance(request, ProduceRequest):
            _Held.asked.set()
            _Held.released.wait(60)
        return self._deliver(node, request, **options)


def test_nothing_is_stored_behind_a_record_that_failed(inbox: KafkaInbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network is broken until the client gives the first record up; the next one has a minute more then."""
    monkeypatch.setattr(producing, "DELIVERY_SECONDS", 1.5)
    monkeypatch.setattr(producing, "_REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(producing, "KafkaProducer", _Broken)
    # Each is a batch of its own.
    records = [Outgoing(UNDERSTOOD, 1, b"k", b"%d" % number + b"x" * 60_000) for number in range(3)]
    with Producer(inbox.connection, LIMITS) as producer:
        with pytest.raises(BrokerUnavailable, match=r"^3 events could not be stored: .* sending all of them again"):
            producer.send(records)
        assert values(inbox.connection, UNDERSTOOD, 1) == []
        monkeypatch.setattr(producing, "KafkaProducer", KafkaProducer)
        assert producer.send(records) == [0, 1, 2]


class _Broken(KafkaProducer):  # type: ignore[misc]
    """Loses every batch until the first was given up, while its caller is slow."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._sent = list[Any]()
        self._deliver = self._sender._client.send
        self._sender._client.send = self._lose

    def send(self, *arguments: Any) -> Any:
        if len(self._sent) == 2:
            first, second = self._sent
            assert first._produce_future.wait(30)
            # Dropped, or stored now that the network works.
            assert second._produce_future.wait(30)
        sent = super().send(*arguments)
        self._sent.append(sent)
        if len(self._sent) > 1:
            [*_, batch] = self._accumulator._batches[sent._produce_future.topic_partition]
            batch.created += 60
        return sent

    def _lose(self, node: int, request: Any, **options: Any) -> Any:
        if isinstance(request, ProduceRequest) and not (self._sent and self._sent[0].is_done):
            return Future().failure(NodeNotReadyError(node))
        return self._deliver(node, request, **options)


def test_a_record_that_is_refused_is_told(inbox: KafkaInbox) -> None:
    """A topic that is compacted takes no records without a key."""
    records = [Outgoing(DOCUMENTS, 1, None if number == 3 else b"k", b"x" * 60_000) for number in range(8)]
    for _ in range(2):
        with pytest.raises(BrokerRefused, match=r"^8 events could not be stored: .*InvalidRecordError"):
            inbox.send(records)
    assert values(inbox.connection, DOCUMENTS, 1) == [records[0].value] * 6
    del records[3]
    assert inbox.send(records) == [*range(6, 13)]


def test_what_a_topic_does_not_take_leaves_the_producer_as_good_as_before(
    connection: Connection, inbox: KafkaInbox
) -> None:
    with KafkaInbox(connection, inbox.register) as hopeful:
        for _ in range(2):
            with pytest.raises(BrokerRefused, match=r"MessageSizeTooLargeError.*topics check"):
                hopeful.append([event("large", "x" * most_bytes(DEAD_LETTERS, LIMITS))])
            assert hopeful.append([event("small")])


def test_after_close_nothing_is_sent(inbox: KafkaInbox) -> None:
    inbox.append([event("a")])
    inbox.close()
    with pytest.raises(BrokerUnavailable, match=r"stopping"):
        inbox.append([event("b")])
