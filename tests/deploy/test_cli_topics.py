"""`gistream topics`: made, checked and described from the command line."""

from __future__ import annotations

import pytest

from deploy.exits import Exit
from tests.broker.cluster import Cluster

from .terminal import Terminal

_KINDS = ("documents", "understood", "dead-letters")


@pytest.fixture
def kafka_terminal(gistream: Terminal, kafka: Cluster, kafka_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("GISTREAM_KAFKA_BOOTSTRAP", kafka.bootstrap)
    monkeypatch.setenv("GISTREAM_KAFKA_PREFIX", kafka_prefix)
    monkeypatch.setenv("GISTREAM_KAFKA_PARTITIONS", "3")
    return gistream


def test_topics_are_made_once(kafka_terminal: Terminal, kafka_prefix: str) -> None:
    missing = kafka_terminal("topics", "check")
    assert missing.code == Exit.REFUSED
    assert missing.out.splitlines() == [
        f"{kafka_prefix}{kind} is missing: make it with `gistream topics create`" for kind in _KINDS
    ]
    made = kafka_terminal.ok("topics", "create", "--json").json
    assert made == {
        "created": [kafka_prefix + kind for kind in _KINDS],
        "there": [],
    }
    assert "is there" in kafka_terminal.ok("topics", "create").out
    assert kafka_terminal.ok("topics", "check").out == "the topics are as they must be\n"
    assert kafka_terminal.ok("topics", "check", "--json").json == {"right": True, "findings": []}


def test_what_differs_is_told(kafka_terminal: Terminal, kafka_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka_terminal.ok("topics", "create")
    monkeypatch.setenv("GISTREAM_KAFKA_RETENTION_HOURS", "1000")
    found = kafka_terminal("topics", "check", "--json")
    assert found.code == Exit.REFUSED
    [finding] = found.json["findings"]
    assert finding["topic"] == f"{kafka_prefix}understood"
    assert finding["flaw"] == "has retention.ms 604800000 and not 3600000000"
    assert finding["remedy"].endswith("--add-config retention.ms=3600000000")


def test_topics_are_described(kafka_terminal: Terminal, kafka_prefix: str) -> None:
    missing = kafka_terminal("topics", "describe")
    assert missing.code == Exit.BROKER
    assert "topics create" in missing.err
    kafka_terminal.ok("topics", "create")
    shown = kafka_terminal.ok("topics", "describe").out
    assert f"{kafka_prefix}documents  message.timestamp.type=LogAppendTime" in shown
    assert f"{kafka_prefix}gistream-apply  waiting=0" in shown
    assert "nobody is in the group" in shown
    described = kafka_terminal.ok("topics", "describe", "--json").json
    assert [len(topic["partitions"]) for topic in described["topics"]] == [3, 3, 1]


def test_without_kafka_it_says_what_to_set(gistream: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = gistream("topics", "check")
    assert (ended.code, "GISTREAM_KAFKA_BOOTSTRAP" in ended.err) == (Exit.USAGE, True)
    monkeypatch.setattr("streams.connection.BOOTSTRAP_SECONDS", 0.5)
    monkeypatch.setenv("GISTREAM_KAFKA_BOOTSTRAP", "127.0.0.1:9")
    ended = gistream("topics", "check")
    assert ended.code == Exit.BROKER
    assert "nobody could be asked at 127.0.0.1:9. either no broker runs there" in ended.err
