"""Commands in Kafka mode: what they send, whom they wait for, and what they say where nobody is at work."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from deploy.assembly import connection, limits
from deploy.exits import Exit
from deploy.settings import Settings, load
from streams.connection import DOCUMENTS
from streams.topics import Layout, create
from tests.broker.cluster import Cluster
from tests.streams.kafka_topics import values
from tests.support import wait_until

from .running import worker
from .terminal import Ended, Terminal, lines

ANNA = {"id": "a", "text": "Anna Berg repaired the Tern."}
BERT = {"id": "b", "text": "Bert sailed to Falkirk."}


@pytest.fixture
def settings(gistream: Terminal, kafka: Cluster, kafka_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Those of every command of this test, whose topics are made."""
    monkeypatch.setenv("GISTREAM_KAFKA_BOOTSTRAP", kafka.bootstrap)
    monkeypatch.setenv("GISTREAM_KAFKA_PREFIX", kafka_prefix)
    found = load()
    create(connection(found), Layout(partitions=2, limits=limits(found)))
    return found


def sent(settings: Settings) -> int:
    return sum(len(values(connection(settings), DOCUMENTS, partition)) for partition in range(2))


def test_what_is_not_waited_for_is_in_the_topic(gistream: Terminal, settings: Settings, tmp_path: Path) -> None:
    ended = gistream("ingest", "notes", "-", "--no-wait", "--json", stdin=lines(ANNA, BERT) + "broken\n")
    assert ended.code == Exit.REFUSED
    assert (ended.json["events"], ended.json["rejected"]) == (3, 1)
    assert ended.json["token"].startswith("documents-")
    assert sent(settings) == 2
    [letter] = gistream.ok("dead-letters", "list", "--json").json["letters"]
    assert letter["source"] == "standard input, line 3"
    assert gistream.ok("status", "--json").json["dead_letters"] == 1
    repaired = gistream.ok(
        "dead-letters", "replay", str(letter["number"]), "--with", "-", "--no-wait", "--json", stdin=lines(BERT)
    )
    assert repaired.json["token"].startswith("documents-")
    (tmp_path / "lines.jsonl").write_text(lines(ANNA))
    gistream.ok("feed", "add", "jsonl", "lines.jsonl", "--namespace", "notes")
    once = gistream.ok("feed", "run", "--once", "--no-wait", "--json").json
    assert once["feeds"]["lines"]["events"] == 1 and once["token"].startswith("documents-")
    assert sent(settings) == 4
    assert gistream("delete", "notes", "a").code == Exit.NOT_FOUND, "nobody has made the namespace"
    assert not (settings.data / "log.db").exists()


def test_a_broker_that_is_away_ends_the_command(
    gistream: Terminal, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.connection.BOOTSTRAP_SECONDS", 0.3)
    monkeypatch.setenv("GISTREAM_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    ended = gistream("ingest", "notes", "-", stdin=lines(ANNA))
    assert ended.code == Exit.BROKER
    assert "127.0.0.1:1" in ended.err and "Traceback" not in ended.err


def test_a_service_beside_workers_takes_nothing_over(gistream: Terminal, settings: Settings) -> None:
    ended = gistream("serve", "--take-over")
    assert (ended.code, "leave --take-over out" in ended.err) == (Exit.USAGE, True)


@pytest.mark.slow
def test_commands_wait_for_workers(
    gistream: Terminal, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.sending.FIRST_LOOK_SECONDS", 0.1)
    ended: list[Ended] = []
    waiting = threading.Thread(
        target=lambda: ended.append(gistream("ingest", "notes", "-", "--json", stdin=lines(ANNA, BERT)))
    )
    waiting.start()
    wait_until(lambda: sent(settings) == 2, what="the events in the topic", timeout=30)
    waiting.join(1)
    assert waiting.is_alive()
    with worker(settings):
        waiting.join(60)
        assert ended[0].code == Exit.OK, ended
        assert ended[0].err.count("no worker has the role understand and apply") == 1
        assert ended[0].json["indexed"] == 2
        quick = gistream.ok("ingest", "notes", "-", "--json", stdin=lines({"id": "c", "text": "Carla stayed."}))
        assert "no worker" not in quick.err
        found = gistream.ok("search", "notes", "Who repaired the Tern?", "--json").json
        assert found["passages"][0]["document"] == "a"
        deleted = gistream.ok("delete", "notes", "a", "--json").json
        assert deleted["deleted"] == 1
        assert gistream.ok("status", "--json").json["namespaces"]["notes"]["documents"] == 2
        busy = gistream("rebuild", "notes")
        assert busy.code == Exit.BUSY
        assert "stop `gistream worker --role apply` first" in busy.err
    assert gistream.ok("verify", "notes", "--json").json["equal"]
    assert gistream.ok("rebuild", "notes", "--json").json["documents"] == 2
