"""Our topics in the Kafka of the tests."""

from __future__ import annotations

from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from streams.cluster import identities
from streams.connection import Connection
from streams.events import Limits
from streams.register import Register
from streams.topics import Layout, create

LIMITS = Limits(document_bytes=100_000, metadata_bytes=10_000)
LAYOUT = Layout(partitions=3, limits=LIMITS)


def registered(connection: Connection, data: Path) -> Register:
    """Make the topics and register them."""
    create(connection, LAYOUT)
    return Register.open(data, connection, identities)


def values(connection: Connection, kind: str, partition: int) -> list[bytes | None]:
    """All that a partition holds."""
    place = TopicPartition(connection.topic(kind), partition)
    consumer = KafkaConsumer(**connection.client(), enable_auto_commit=False)
    try:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end, found = consumer.end_offsets([place])[place], list[bytes | None]()
        while consumer.position(place) < end:
            for records in consumer.poll(timeout_ms=1000).values():
                found += [record.value for record in records]
        return found
    finally:
        consumer.close()
