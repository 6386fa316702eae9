"""How much waits in the topics, and since when."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from index.errors import WrongTopics
from streams.cluster import Cluster as Asked
from streams.connection import DOCUMENTS, UNDERSTOOD, Connection
from streams.producer import Outgoing, Producer
from streams.topic_lag import LagMeter, PartitionLag, lag
from streams.topics import create
from tests.broker.cluster import Cluster
from tests.support import wait_until

from .kafka_topics import LAYOUT, LIMITS


@pytest.fixture
def connection(kafka: Cluster, kafka_prefix: str) -> Connection:
    connection = Connection(kafka.bootstrap, prefix=kafka_prefix)
    create(connection, LAYOUT)
    return connection


@pytest.fixture
def admin(connection: Connection) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(**connection.client())
    yield admin
    admin.close()


def commit(admin: KafkaAdminClient, connection: Connection, role: str, kind: str, partition: int, offset: int) -> None:
    place = TopicPartition(connection.topic(kind), partition)
    answer = admin.alter_group_offsets(connection.group(role), {place: OffsetAndMetadata(offset, "", -1)})
    assert answer[place].errno == 0


def test_what_no_worker_has_taken_waits_from_the_start(connection: Connection, admin: KafkaAdminClient) -> None:
    before = time.time_ns() // 1_000_000 * 1000
    with Producer(connection, LIMITS) as producer, LagMeter(connection) as meter:
        nothing = PartitionLag(0, 0, None, None)
        assert meter.read() == {role: dict.fromkeys(range(3), nothing) for role in ("understand", "apply")}
        producer.send([Outgoing(DOCUMENTS, 1, b"k%d" % number, b"x") for number in range(5)])
        first = meter.read()["understand"]
        assert (first[0], first[1].waiting, first[1].committed) == (nothing, 5, None)
        assert first[1].oldest is not None
        assert before <= first[1].oldest <= time.time_ns() // 1000
        assert meter.read()["understand"] == first

        commit(admin, connection, "understand", DOCUMENTS, 1, 3)
        # The cluster stamps in milliseconds: the later records have a stamp of their own.
        former = first[1].oldest
        wait_until(lambda: time.time_ns() // 1_000_000 * 1000 > former)
        producer.send([Outgoing(UNDERSTOOD, 2, b"k", b"x"), Outgoing(DOCUMENTS, 1, b"k", b"x")])
        later = meter.read()
        assert (later["understand"][1].committed, later["understand"][1].waiting) == (3, 3)
        assert (later["apply"][2].committed, later["apply"][2].waiting) == (None, 1)

        commit(admin, connection, "understand", DOCUMENTS, 1, 5)
        commit(admin, connection, "apply", UNDERSTOOD, 2, 1)
        last = meter.read()
        assert last["apply"][2] == PartitionLag(0, 1, 1, None)
        assert last["understand"][1].waiting == 1
        assert (last["understand"][1].oldest or 0) > former


def test_it_is_cheap(connection: Connection) -> None:
    """It is asked every second; on a busy machine this is still far from it."""
    with Producer(connection, LIMITS) as producer, LagMeter(connection) as meter:
        producer.send([Outgoing(DOCUMENTS, partition, b"k", b"x") for partition in range(3)])
        meter.read()
        started = time.perf_counter()
        for _ in range(10):
            meter.read()
        assert (time.perf_counter() - started) / 10 < 0.5


def test_a_group_shows_its_members(connection: Connection) -> None:
    group = connection.group("apply")
    consumer = KafkaConsumer(**connection.client(), group_id=group, group_instance_id="worker-7")
    try:
        # A leader of a group that has not heard of the topic yet gives nobody any of its partitions.
        assert consumer.partitions_for_topic(connection.topic(UNDERSTOOD)) == {0, 1, 2}
        consumer.subscribe([connection.topic(UNDERSTOOD)])
        with Asked(connection) as cluster:
            wait_until(lambda: consumer.poll(timeout_ms=200) == {} and bool(consumer.assignment()), timeout=60)
            found = cluster.members([group, connection.group("understand")])
    finally:
        consumer.close()
    assert [(member.id, member.host) for member in found[group]] == [("worker-7", "127.0.0.1")]
    assert found[group][0].partitions == tuple(f"{connection.topic(UNDERSTOOD)}-{number}" for number in range(3))
    assert found[connection.group("understand")] == []


def test_a_missing_topic_is_said(kafka: Cluster, kafka_prefix: str) -> None:
    with pytest.raises(WrongTopics, match=r"there is no topic .*documents\. .*topics create"):
        lag(Connection(kafka.bootstrap, prefix=kafka_prefix))
