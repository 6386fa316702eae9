"""Dead letters in a real topic: the same letter only once, the same for every process, and told how it fares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from index.errors import BrokerUnavailable, NotFound, WrongTopics
from index.types import DocumentEvent
from streams.connection import DEAD_LETTERS, Connection
from streams.letter import DeadLetter
from streams.letter_topic import TopicLetters
from streams.producer import Outgoing, Producer
from streams.wire import most_bytes
from tests.broker.cluster import Cluster
from tests.support import wait_until

from .letter_boxes import LIMITS, Accepting, connected, make_topic, topic_letters

EVENT = DocumentEvent(namespace="ada", id="d", text="repaired")


@pytest.fixture
def connection(kafka: Cluster, kafka_prefix: str) -> Connection:
    connection = connected(kafka, kafka_prefix)
    make_topic(connection)
    return connection


@pytest.fixture
def letters(connection: Connection) -> Iterator[TopicLetters]:
    with topic_letters(connection, Accepting()) as letters:
        yield letters


@pytest.fixture
def other(connection: Connection) -> Iterator[TopicLetters]:
    """What another process has of the same letters."""
    with topic_letters(connection, Accepting()) as letters:
        yield letters


def put(letters: TopicLetters, position: int | None = 1007, payload: bytes | None = b"{") -> int:
    letter = DeadLetter("documents-2", "decode", "not JSON", payload or b"", position=position, key=b"ada/d")
    return letters.put(replace(letter, is_tombstone=payload is None))


def test_a_letter_written_again_after_a_crash_is_the_same(letters: TopicLetters, other: TopicLetters) -> None:
    numbers = [put(letters), put(other, 1008), put(letters, None)]
    assert [put(other), put(letters, 1008), put(other, None)] == numbers
    assert [letter.number for letter in other.waiting()] == numbers and letters.count() == 3
    assert other.waiting() == letters.waiting()


def test_one_that_was_replayed_does_not_come_back(letters: TopicLetters, other: TopicLetters) -> None:
    known, unknown = put(letters), put(letters, None)
    for number in (known, unknown):
        letters.replay(number, EVENT)
    assert put(other) == known and other.count() == 0
    # Without a position it may as well be the same line, sent once more.
    assert put(other, None) > unknown and other.count() == 1


def test_a_replay_that_was_killed_before_it_was_noted_is_done_again(connection: Connection) -> None:
    class Killed(Accepting):
        def append(self, events: Sequence[DocumentEvent]) -> list[str]:
            super().append(events)
            raise KeyboardInterrupt

    inbox = Killed()
    with topic_letters(connection, inbox) as letters, pytest.raises(KeyboardInterrupt):
        letters.replay(put(letters), EVENT)
    with topic_letters(connection, Accepting()) as letters:
        [letter] = letters.waiting()
        assert letters.replay(letter.number, EVENT) == letters.show(letter.number).replayed == "documents-2:0"
    assert inbox.events == [EVENT]


def test_a_tombstone_and_an_empty_value_are_told_apart(letters: TopicLetters) -> None:
    put(letters, 1, None)
    put(letters, 2, b"")
    tombstone, empty = letters.waiting()
    assert (tombstone.payload, tombstone.is_tombstone, tombstone.key) == (b"", True, b"ada/d")
    assert (empty.payload, empty.is_tombstone, empty.key) == (b"", False, b"ada/d")


def test_a_letter_as_large_as_an_event_is_whole_and_a_larger_one_is_cut(letters: TopicLetters) -> None:
    most = most_bytes(DEAD_LETTERS, LIMITS)
    payload = bytes(range(256)) * (most // 256 + 2)
    whole, larger = put(letters, 1, payload[: most - 1000]), put(letters, 2, payload)
    assert letters.show(whole).payload == payload[: most - 1000] and letters.show(whole).cut_from is None
    cut = letters.show(larger)
    assert payload.startswith(cut.payload) and len(cut.payload) > most - 1000 and cut.cut_from == len(payload)
    assert put(letters, 3) == larger + 1, "nothing is wrong with what comes after it"


def test_what_a_foreign_program_writes_there_is_a_letter(connection: Connection, letters: TopicLetters) -> None:
    with Producer(connection, LIMITS) as producer:
        producer.send([Outgoing(DEAD_LETTERS, 0, key, b"?", [("position", b"x")]) for key in (b"", b"\xff")])
    assert [letter.payload for letter in letters.waiting()] == [b"?", b"?"]
    letters.remove(1)
    assert [letter.number for letter in letters.waiting()] == [2]


def test_many_letters_come_in_pages(letters: TopicLetters) -> None:
    producer = letters._producer
    producer.send([Outgoing(DEAD_LETTERS, 0, b"%d" % number, b"%d" % number) for number in range(3000)])
    producer.send([Outgoing(DEAD_LETTERS, 0, b"%d" % number, None) for number in range(0, 3000, 2)])
    assert letters.count() == 1500
    assert [letter.payload for letter in letters.waiting(limit=3, after=1000)] == [b"1001", b"1003", b"1005"]
    assert len(letters.waiting(limit=2000)) == 1500


def test_a_topic_made_anew_begins_without_letters(connection: Connection, letters: TopicLetters) -> None:
    for position in range(3):
        put(letters, position)
    assert letters.count() == 3
    admin = KafkaAdminClient(**connection.client())
    admin.delete_topics([connection.topic(DEAD_LETTERS)])
    name = connection.topic(DEAD_LETTERS)
    wait_until(lambda: name not in admin.list_topics(), what="the end of the topic")
    admin.close()
    make_topic(connection)
    with topic_letters(connection, Accepting()) as fresh:
        assert fresh.count() == 0 and put(fresh, 9) == 1
    assert letters.count() == 1 and [letter.position for letter in letters.waiting()] == [9]


def test_what_is_missing_is_told(kafka: Cluster, kafka_prefix: str) -> None:
    with topic_letters(connected(kafka, kafka_prefix), Accepting()) as letters:
        with pytest.raises(WrongTopics, match="topics create"):
            letters.count()
        make_topic(connected(kafka, kafka_prefix))
        assert letters.count() == 0
        with pytest.raises(NotFound):
            letters.replay(1, EVENT)


def test_a_broker_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.connection.BOOTSTRAP_SECONDS", 0.5)
    with topic_letters(Connection("127.0.0.1:1"), Accepting()) as letters, pytest.raises(BrokerUnavailable):
        letters.count()


@pytest.mark.slow
def test_compaction_forgets_what_was_dropped_and_nothing_else(connection: Connection, letters: TopicLetters) -> None:
    name = connection.topic(DEAD_LETTERS)
    admin = KafkaAdminClient(**connection.client())
    eager = {"min.cleanable.dirty.ratio": "0.0", "segment.ms": "100", "delete.retention.ms": "0"}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, eager)])
    admin.close()
    numbers = [put(letters, position, b"%d" % position) for position in range(6)]
    letters.remove(numbers[0])
    letters.replay(numbers[2], EVENT)
    before = letters.waiting()
    assert letters.show(numbers[2]).payload == b"2"

    def is_compacted() -> bool:
        # What is written last is never compacted, so something has to come.
        put(letters, 10**6)
        letters.remove(letters.waiting()[-1].number)
        with topic_letters(connection, Accepting()) as fresh:
            return fresh.show(numbers[2]).payload == b""

    wait_until(is_compacted, timeout=60, what="compaction")
    with topic_letters(connection, Accepting()) as fresh:
        assert fresh.waiting() == letters.waiting() == before
        assert fresh.show(numbers[2]).replayed == letters.show(numbers[2]).replayed == "documents-2:0"
        assert put(fresh, 2) == numbers[2] and fresh.count() == 4
        with pytest.raises(NotFound):
            fresh.show(numbers[0])
