"""What is sent to Kafka: tokens, order without holes, and what happens when it fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from index.errors import BrokerUnavailable, InvalidEvent, WrongTopics
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


def test_after_close_nothing_is_sent(inbox: KafkaInbox) -> None:
    inbox.append([event("a")])
    inbox.close()
    with pytest.raises(BrokerUnavailable, match=r"stopping"):
        inbox.append([event("b")])
