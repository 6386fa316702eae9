"""A topic that somebody else writes JSON to, on the tests' broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from streams.connection import Connection
from streams.feeds.mapping import Fields
from streams.feeds.topic import Topic
from tests.broker.cluster import Cluster

from .sources import NAMESPACE, SMALL

FIELDS = Fields(text=("body",))
PARTITIONS = 3


class ForeignTopic:
    """A Source whose items are records by their key; what is taken away gets a tombstone."""

    remembers = True

    def __init__(self, bootstrap: str, name: str, producer: KafkaProducer) -> None:
        self.connection = Connection(bootstrap)
        self.name = name
        self.producer = producer

    def send(self, key: bytes | None, value: bytes | None, partition: int | None = None) -> None:
        self.producer.send(self.name, key=key, value=value, partition=partition).get(timeout=30)

    def put(self, name: str, text: str) -> None:
        self.send(name.encode(), json.dumps({"body": text}).encode())

    def spoil(self, name: str) -> None:
        self.send(name.encode(), b'{"body": "\xff"}')

    def remove(self, name: str) -> None:
        self.send(name.encode(), None)

    def feed(self) -> Topic:
        return Topic(self.connection, self.name, NAMESPACE, FIELDS, prefix="topic/", limits=SMALL)

    def id(self, name: str) -> str:
        return f"topic/{name}"

    def create(self) -> None:
        with self._admin() as admin:
            admin.create_topics({self.name: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)

    def delete(self) -> None:
        with self._admin() as admin:
            admin.delete_topics([self.name])

    def expire(self, partition: int, before: int) -> None:
        """Delete the records before an offset, as the topic's retention does."""
        with self._admin() as admin:
            admin.delete_records({TopicPartition(self.name, partition): before})

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        with closing(KafkaAdminClient(**self.connection.client())) as admin:
            yield admin


@contextmanager
def foreign_topic(cluster: Cluster, name: str) -> Iterator[ForeignTopic]:
    """A new topic."""
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", max_block_ms=30_000)) as producer:
        topic = ForeignTopic(cluster.bootstrap, name, producer)
        topic.create()
        yield topic
