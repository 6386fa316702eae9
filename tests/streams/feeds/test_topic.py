"""A foreign topic, read from the tests' broker: where it goes on, what it passes over, and what it says of that."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import closing, suppress

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import TopicAlreadyExistsError

from index.errors import FeedError, NotFound
from streams.connection import Connection
from streams.feeds.base import Memory, Rejected, Step
from streams.feeds.mapping import Fields
from streams.feeds.topic import LOST, Topic
from tests.broker.cluster import Cluster
from tests.support import wait_until

from .foreign import PARTITIONS, ForeignTopic
from .sources import NAMESPACE, Delivered


@pytest.fixture
def source(foreign: ForeignTopic) -> ForeignTopic:
    return foreign


def read(topic: Topic, memory: Memory, most: int | None = None) -> list[str]:
    """Ids of what a poll brings, which `memory` learns; killed after `most` steps."""
    found = []
    with closing(topic.poll(memory)) as steps:  # type: ignore[type-var]
        for number, step in enumerate(steps):
            if number == most:
                break
            memory.learn(step)
            found += [event.id for event in step.events]
    return found


def rejected(steps: list[Step]) -> list[Rejected]:
    return [item for step in steps for item in step.rejected]


def record(text: str) -> bytes:
    return json.dumps({"body": text}).encode()


def test_it_goes_on_where_it_was_killed(foreign: ForeignTopic) -> None:
    ids = [f"topic/{number}" for number in range(12)]
    for number in range(12):
        foreign.send(str(number).encode(), record("One."), partition=number % PARTITIONS)
    memory = Memory()
    found = []
    for most in (2, 5, 1, 4):
        found += read(foreign.feed(), memory, most)
    assert len(found) == 12
    assert sorted(found) == sorted(ids), "none twice, none missing"
    assert found == sorted(found, key=lambda id: int(id.removeprefix("topic/")) % PARTITIONS), "partition by partition"
    assert read(foreign.feed(), memory) == []
    cursor = json.loads(memory.cursor)
    assert cursor["offsets"] == {"0": 4, "1": 4, "2": 4}


def test_it_says_which_record_is_flawed(foreign: ForeignTopic) -> None:
    foreign.send(b"a", record("One."), partition=2)
    foreign.send(b"b", b"{", partition=2)
    foreign.send(b"\xff", None, partition=2)
    foreign.send(b"x" * 600, record("secret"), partition=2)
    foreign.send(b"c", record("Two."), partition=2)
    steps = list(foreign.feed().poll(Memory()))
    assert [event.id for step in steps for event in step.events] == ["topic/a", "topic/c"]
    flaws = rejected(steps)
    assert [flaw.place for flaw in flaws] == [f"partition 2, offset {offset}" for offset in (1, 2, 3)]
    assert {flaw.source for flaw in flaws} == {foreign.name}
    assert [flaw.payload for flaw in flaws] == [b"{", b"\xff", record("secret")]
    assert not any("secret" in flaw.reason for flaw in flaws)


def test_a_look_ends_where_the_topic_ended_when_it_began(foreign: ForeignTopic) -> None:
    foreign.send(b"a", record("One."), partition=0)
    foreign.send(b"b", record("Two."), partition=0)
    memory, seen = Memory(), []
    for step in foreign.feed().poll(memory):
        memory.learn(step)
        seen += [event.id for event in step.events]
        foreign.send(b"later", record("Three."), partition=0)
    assert seen == ["topic/a", "topic/b"]
    assert set(read(foreign.feed(), memory)) == {"topic/later"}


def test_what_retention_deleted_before_it_was_read_is_told(
    foreign: ForeignTopic, delivered: Delivered, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        foreign.send(str(number).encode(), record("One."), partition=1)
    delivered.follow()
    for number in range(4, 9):
        foreign.send(str(number).encode(), record("Two."), partition=1)
    foreign.expire(1, before=7)
    with caplog.at_level(logging.WARNING, "streams.feeds.topic"):
        assert [event.id for event in delivered.follow()] == ["topic/7", "topic/8"]
    assert "partition 1: offsets 4 to 6 were deleted before they were read" in caplog.text
    assert delivered.book.progress(delivered.entry).skipped == {LOST: 3}
    assert delivered.follow() == []
    assert delivered.book.progress(delivered.entry).skipped == {LOST: 3}, "the next look does not forget it"
    foreign.expire(1, before=9)
    assert delivered.follow() == [], "what was read may go"
    assert delivered.book.progress(delivered.entry).skipped == {LOST: 3}


def test_a_topic_that_was_created_anew_is_read_from_its_beginning(
    foreign: ForeignTopic, caplog: pytest.LogCaptureFixture
) -> None:
    memory = Memory()
    foreign.send(b"a", record("One."), partition=0)
    foreign.send(b"b", record("One."), partition=0)
    assert read(foreign.feed(), memory) == ["topic/a", "topic/b"]
    foreign.delete()

    def created() -> bool:
        with suppress(TopicAlreadyExistsError):
            foreign.create()
            return True
        return False

    wait_until(created, what="the topic's deletion")
    with closing(KafkaProducer(bootstrap_servers=foreign.connection.bootstrap)) as producer:
        producer.send(foreign.name, key=b"c", value=record("Two."), partition=0).get(timeout=30)
        producer.send(foreign.name, key=b"d", value=record("Two."), partition=0).get(timeout=30)
        producer.send(foreign.name, key=b"e", value=record("Two."), partition=0).get(timeout=30)
    assert read(foreign.feed(), memory) == ["topic/c", "topic/d", "topic/e"]
    assert "was created anew" in caplog.text
    assert read(foreign.feed(), memory) == []


def test_a_topic_that_lost_its_end_is_read_again(foreign: ForeignTopic, caplog: pytest.LogCaptureFixture) -> None:
    foreign.send(b"a", record("One."), partition=0)
    memory = Memory()
    read(foreign.feed(), memory)
    cursor = json.loads(memory.cursor)
    cursor["offsets"]["0"] = 5
    memory.cursor = json.dumps(cursor)
    assert read(foreign.feed(), memory) == ["topic/a"]
    assert "ends at 1, and was read up to 5 before; it is read again" in caplog.text


def test_partitions_that_are_added_are_read(foreign: ForeignTopic) -> None:
    memory = Memory()
    foreign.send(b"a", record("One."), partition=0)
    read(foreign.feed(), memory)
    with closing(KafkaAdminClient(bootstrap_servers=foreign.connection.bootstrap)) as admin:
        admin.create_partitions({foreign.name: PARTITIONS + 1})

    def sent() -> bool:
        with closing(KafkaProducer(bootstrap_servers=foreign.connection.bootstrap)) as producer:
            if PARTITIONS not in producer.partitions_for(foreign.name):
                return False
            producer.send(foreign.name, key=b"b", value=record("Two."), partition=PARTITIONS).get(timeout=30)
            return True

    wait_until(sent, what="the new partition")
    assert read(foreign.feed(), memory) == ["topic/b"]


def test_what_a_transaction_took_back_is_no_document(foreign: ForeignTopic, kafka_prefix: str) -> None:
    transactions = KafkaProducer(bootstrap_servers=foreign.connection.bootstrap, transactional_id=f"{kafka_prefix}t")
    with closing(transactions) as producer:
        producer.init_transactions()
        for name, is_kept in ((b"a", True), (b"b", False), (b"c", True), (b"d", False)):
            producer.begin_transaction()
            # What was never sent could not be taken back.
            producer.send(foreign.name, key=name, value=record("One."), partition=0).get(timeout=30)
            (producer.commit_transaction if is_kept else producer.abort_transaction)()
    memory = Memory()
    assert read(foreign.feed(), memory) == ["topic/a", "topic/c"]
    assert read(foreign.feed(), memory) == []


def test_it_waits_until_there_is_more_or_it_is_told_to_stop(foreign: ForeignTopic) -> None:
    feed, stop = foreign.feed(), threading.Event()
    list(feed.poll(Memory()))
    waiting = threading.Thread(target=feed.wait, args=(stop,))
    waiting.start()
    waiting.join(0.7)
    assert waiting.is_alive(), "nothing has come"
    foreign.send(b"a", record("One."))
    waiting.join(20)
    assert not waiting.is_alive()
    list(feed.poll(Memory()))
    waiting = threading.Thread(target=feed.wait, args=(stop,))
    waiting.start()
    stop.set()
    waiting.join(20)
    assert not waiting.is_alive()


def test_a_topic_that_is_not_there_is_told(kafka: Cluster, kafka_prefix: str) -> None:
    feed = Topic(Connection(kafka.bootstrap), f"{kafka_prefix}nowhere", NAMESPACE, Fields())
    with pytest.raises(NotFound, match="there is no topic"):
        list(feed.poll(Memory()))
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        assert f"{kafka_prefix}nowhere" not in admin.list_topics(), "to ask for it does not make it"
    with pytest.raises(FeedError, match="InvalidTopic"):
        list(Topic(Connection(kafka.bootstrap), "no name", NAMESPACE, Fields()).poll(Memory()))


def test_a_broker_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.connection.BOOTSTRAP_SECONDS", 0.3)
    feed = Topic(Connection("127.0.0.1:1"), "articles", NAMESPACE, Fields())
    with pytest.raises(
        FeedError,
        match=r"the topic articles at 127.0.0.1:1 cannot be read: BrokerUnavailable: .*: nobody could be asked at 127",
    ) as raised:
        list(feed.poll(Memory()))
    assert raised.value.recoverable
    feed.wait(threading.Event())
