"""`gistream dead-letters` over a topic of Kafka: what the workers could not read is told, replayed and dropped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.exits import Exit
from streams.connection import DOCUMENTS, Connection
from streams.letter import DeadLetter
from streams.letter_topic import TopicLetters
from streams.producer import Producer
from tests.broker.cluster import Cluster

from .terminal import Terminal

ANN = {"namespace": "notes", "id": "people/ann", "text": "Ann Lee flies the Swallow."}


@pytest.fixture
def connection(
    kafka: Cluster, kafka_prefix: str, gistream: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Connection:
    monkeypatch.setenv("GISTREAM_KAFKA_BOOTSTRAP", kafka.bootstrap)
    monkeypatch.setenv("GISTREAM_KAFKA_PREFIX", kafka_prefix)
    monkeypatch.setenv("GISTREAM_KAFKA_PARTITIONS", "2")
    gistream.ok("topics", "create")
    return Connection(kafka.bootstrap, prefix=kafka_prefix)


def put(connection: Connection, *payloads: bytes | None) -> list[int]:
    """Letters as a worker writes them."""
    letter = DeadLetter(f"{DOCUMENTS}-1", "decode", "odd", b"", key=b"a\xff")
    with Producer(connection) as producer, TopicLetters(producer, lambda: pytest.fail("a worker replays")) as letters:
        return [
            letters.put(replace(letter, position=position, payload=payload or b"", is_tombstone=payload is None))
            for position, payload in enumerate(payloads)
        ]


def test_letters_of_the_topic_are_told_and_dropped(gistream: Terminal, connection: Connection) -> None:
    assert gistream.ok("dead-letters", "list").out == "no dead letter waits\n"
    assert gistream.ok("status", "--json").json["dead_letters"] == 0
    assert put(connection, b"\xff{", None, b"7") == [1, 2, 3]
    assert gistream.ok("status", "--json").json["dead_letters"] == 3
    listed = gistream.ok("dead-letters", "list", "--limit", "2", "--json").json
    assert listed["dead_letters"] == 3 and [letter["number"] for letter in listed["letters"]] == [1, 2]
    shown = gistream.ok("dead-letters", "show", "1", "--json").json
    assert shown == listed["letters"][0] | {"payload": "\\xff{"}
    place = {"source": "documents-1", "position": 0, "step": "decode", "reason": "odd", "bytes": 2, "key": "a\\xff"}
    assert shown.items() >= place.items()
    assert gistream.ok("dead-letters", "drop", "3", "1", "--json").json == {"dropped": 2, "dead_letters": 1}
    assert gistream("dead-letters", "show", "1").code == Exit.NOT_FOUND
    assert not (gistream.data / "log.db").exists(), "nothing of the local log is touched"


def test_a_letter_is_sent_to_the_topic_again(gistream: Terminal, connection: Connection) -> None:
    put(connection, b"{", None, json.dumps(ANN).encode())
    for number, says in (("1", "not JSON"), ("2", "not UTF-8 at byte 1")):
        refused = gistream("dead-letters", "replay", number)
        assert refused.code == Exit.REFUSED and says in refused.err
    for number, repaired in (("3", ()), ("1", ("--with", "-"))):
        sent = gistream.ok(
            "dead-letters", "replay", number, *repaired, "--no-wait", "--json", stdin=json.dumps(ANN | {"version": 3})
        ).json
        assert sent["id"] == "people/ann" and sent["token"].startswith("documents-")
        assert gistream.ok("dead-letters", "show", number, "--json").json["replayed"] == sent["token"]
    assert [letter["number"] for letter in gistream.ok("dead-letters", "list", "--json").json["letters"]] == [2]


def test_where_kafka_does_not_answer_the_rest_is_told(gistream: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTREAM_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setattr("streams.connection.BOOTSTRAP_SECONDS", 0.5)
    told = gistream.ok("status", "--json")
    assert told.json["dead_letters"] is None and told.json["namespaces"] == {} and "dead letters:" in told.err
    listed = gistream("dead-letters", "list")
    assert listed.code == Exit.BROKER and "127.0.0.1:1" in listed.err
