"""The Kafka that tests run on keeps what it has acknowledged, and serves each test apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from .cluster import Cluster


def create(cluster: Cluster, topic: str, *, partitions: int = 1, copies: int = 1) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": copies}}, wait_for_metadata=True)
    admin.close()


@contextmanager
def producing(cluster: Cluster) -> Iterator[KafkaProducer]:
    """A producer that is told of an event only when it is kept."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", max_block_ms=30_000)
    try:
        yield producer
    finally:
        producer.close(timeout=10)


def produce(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    with producing(cluster) as producer:
        for sent in [producer.send(topic, value) for value in values]:
            sent.get(timeout=60)


def consume(cluster: Cluster, topic: str, count: int, *, group: str | None = None) -> list[bytes]:
    """The first `count` values; fewer, where a minute brings no more."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=60_000,
    )
    try:
        return [record.value for record in islice(consumer, count)]
    finally:
        consumer.close()


def test_what_is_produced_is_consumed_in_a_group_too(kafka: Cluster, kafka_prefix: str) -> None:
    topic, values = f"{kafka_prefix}events", [b"%d" % number for number in range(50)]
    create(kafka, topic)
    produce(kafka, topic, values)
    assert consume(kafka, topic, 50) == values
    assert consume(kafka, topic, 50, group=f"{kafka_prefix}group") == values
