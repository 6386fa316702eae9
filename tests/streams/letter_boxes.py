"""Boxes of dead letters for tests: beside a log, and in a topic of a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaAdminClient

from index.types import DocumentEvent
from streams.connection import DEAD_LETTERS, Connection
from streams.dead_letters import DeadLetters
from streams.events import Limits
from streams.letter_topic import TopicLetters
from streams.log import Log
from streams.producer import Producer
from streams.wire import most_bytes
from tests.broker.cluster import Cluster

LIMITS = Limits(document_bytes=2**16, metadata_bytes=2**10)


class Accepting:
    """An inbox that keeps events in a list."""

    def __init__(self) -> None:
        self.events: list[DocumentEvent] = []

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        first = len(self.events)
        self.events += events
        return [f"documents-2:{position}" for position in range(first, len(self.events))]


def make_topic(connection: Connection) -> None:
    """The topic of dead letters, empty."""
    admin = KafkaAdminClient(**connection.client())
    configs = {"cleanup.policy": "compact", "max.message.bytes": str(most_bytes(DEAD_LETTERS, LIMITS))}
    topic = {"num_partitions": 1, "replication_factor": 1, "configs": configs}
    admin.create_topics({connection.topic(DEAD_LETTERS): topic}, wait_for_metadata=True)
    admin.close()


@contextmanager
def topic_letters(connection: Connection, inbox: Accepting) -> Iterator[TopicLetters]:
    """What one process of an installation has of the letters in the topic."""
    with Producer(connection, LIMITS) as producer, TopicLetters(producer, lambda: inbox) as letters:
        yield letters


@contextmanager
def local_letters(folder: Path) -> Iterator[DeadLetters]:
    with Log(folder / "log.db") as log:
        yield DeadLetters(log)


def connected(cluster: Cluster, prefix: str) -> Connection:
    return Connection(cluster.bootstrap, prefix=prefix)
