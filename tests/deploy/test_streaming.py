"""The server in Kafka mode: over the tests' broker without any worker, without a broker, and with workers at work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.assembly import connection, open_book
from deploy.settings import Settings
from deploy.streaming import Streaming
from streams.connection import DOCUMENTS
from streams.feeds.book import Entry
from tests.broker.cluster import Cluster
from tests.streams.kafka_topics import LAYOUT, LIMITS, values
from tests.support import wait_until

from .running import worker
from .test_embedded import ask, put


def settings(data: Path, bootstrap: str, prefix: str = "", **others: Any) -> Settings:
    return Settings(
        data=data,
        port=0,
        embedding_dimensions=64,
        kafka_bootstrap=bootstrap,
        kafka_prefix=prefix,
        max_document_bytes=LIMITS.document_bytes,
        max_metadata_bytes=LIMITS.metadata_bytes,
        **others,
    )


@pytest.fixture
def streamed(tmp_path: Path, kafka: Cluster, kafka_prefix: str) -> Settings:
    """Settings of a server, whose topics are made."""
    from streams.topics import create

    found = settings(tmp_path / "data", kafka.bootstrap, kafka_prefix)
    create(connection(found), LAYOUT)
    return found


def stored(found: Settings) -> list[dict[str, Any] | None]:
    """All events in `documents`; None for a tombstone."""
    records = [value for partition in range(3) for value in values(connection(found), DOCUMENTS, partition)]
    return [None if value is None else json.loads(value) for value in records]


def metric(url: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", httpx.get(f"{url}/metrics").text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def status(url: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/v1/status").json()
    return found


def test_what_is_written_is_durable_in_the_topic(streamed: Settings) -> None:
    with Streaming(streamed) as server:
        documents = f"{server.url}/v1/namespaces/ns/documents"
        token = put(server.url, "a/b", "Anna repaired the Tern.")
        assert re.fullmatch(r"documents-[0-2]:0", token)
        many = [{"id": "b", "text": "Bert.", "version": 3}, {"id": "c", "op": "delete", "version": 4}]
        assert len(httpx.post(documents, json=many).json()["tokens"]) == 2
        deleted = httpx.delete(f"{documents}/a/b").json()["token"]
        assert deleted > token, "a document stays in one partition"
        assert deleted.partition(":")[0] == token.partition(":")[0]
        events = stored(streamed)
        assert sorted((event or {}).get("id", "") for event in events) == ["", "a/b", "b", "c"]
        wait_until(lambda: metric(server.url, "gistream_lag_events") == 4, what="counting what nobody applied")
        assert metric(server.url, "gistream_lag_seconds") > 0
        wait_until(lambda: httpx.get(f"{server.url}/health/ready").status_code == 200, what="being ready", timeout=60)
        answer = httpx.get(f"{documents}/b")
        assert answer.status_code == 404, "nobody has applied it"
    assert not (streamed.data / "log.db").exists()


def test_bodies_are_pushed_and_what_is_refused_is_a_dead_letter(streamed: Settings) -> None:
    with Streaming(streamed) as server:
        wait_until(lambda: status(server.url)["dead_letters"] == 0, what="counting the letters")
        lines = b'"Anna sailed."\n{"n": 1}\n"Bert stayed."\n'
        headers = {"content-type": "application/x-ndjson"}
        answer = httpx.post(f"{server.url}/v1/namespaces/ns/push", content=lines, headers=headers)
        assert answer.status_code == 202, answer.text
        assert [refusal["place"] for refusal in answer.json()["refused"]] == ["line 2"]
        assert sorted((event or {})["text"] for event in stored(streamed)) == ["Anna sailed.", "Bert stayed."]
        wait_until(lambda: status(server.url)["dead_letters"] == 1, what="counting the letter")
        assert metric(server.url, "gistream_dead_letters_waiting") == 1


def test_feeds_write_to_the_topic(streamed: Settings, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text('{"id": "a", "text": "Anna."}\nbroken\n{"id": "b", "text": "Bert."}\n')
    with open_book(streamed) as book:
        book.add(Entry("lines", "jsonl", str(tmp_path / "lines.jsonl"), "ns"))
    with Streaming(streamed) as server:
        wait_until(lambda: status(server.url)["feeds"]["lines"]["events"] == 2, what="the feed's events", timeout=30)
        wait_until(lambda: status(server.url)["dead_letters"] == 1, what="the broken line")
    assert sorted((event or {})["id"] for event in stored(streamed)) == ["a", "b"]


def test_one_that_only_reads_takes_nothing(streamed: Settings) -> None:
    with Streaming(streamed, read_only=True) as server:
        assert httpx.put(f"{server.url}/v1/namespaces/ns/documents/a", json={"text": "Anna."}).status_code == 405
        push, headers = f"{server.url}/v1/namespaces/ns/push", {"content-type": "text/plain"}
        assert httpx.post(push, content=b"Anna.", headers=headers).status_code == 405
        wait_until(lambda: status(server.url)["dead_letters"] == 0, what="counting the letters")
    assert stored(streamed) == []


def test_without_a_broker_it_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.connection.BOOTSTRAP_SECONDS", 0.3)
    with Streaming(settings(tmp_path, "127.0.0.1:1")) as server:
        answer = httpx.put(f"{server.url}/v1/namespaces/ns/documents/a", json={"text": "Anna."}, timeout=30)
        assert answer.status_code == 503
        problem = answer.json()
        assert problem["type"] == "urn:problem-type:gistream:broker-unavailable"
        assert "127.0.0.1:1" in problem["detail"] and "no broker runs there" in problem["hint"]
        wait_until(
            lambda: "Kafka cannot be used" in httpx.get(f"{server.url}/health/ready").json().get("detail", ""),
            what="saying that it is not ready",
        )
        assert httpx.get(f"{server.url}/health/live").status_code == 200
        assert status(server.url)["dead_letters"] is None
        question = {"question": "Who?", "max_staleness": 1, "wait_seconds": 0.1}
        assert httpx.post(f"{server.url}/v1/namespaces/ns/retrieve", json=question).status_code in (404, 503)


def test_topics_that_are_missing_are_told(tmp_path: Path, kafka: Cluster, kafka_prefix: str) -> None:
    with Streaming(settings(tmp_path, kafka.bootstrap, kafka_prefix)) as server:
        answer = httpx.put(f"{server.url}/v1/namespaces/ns/documents/a", json={"text": "Anna."}, timeout=30)
        assert (answer.status_code, answer.json()["hint"]) == (503, "make it with `gistream topics create`")


@pytest.mark.slow
def test_with_workers_it_is_as_with_a_runner(streamed: Settings) -> None:
    with Streaming(streamed) as server, worker(streamed):
        token = put(server.url, "a", "Anna Berg repaired the Tern at Dock Nine.")
        found = ask(server.url, "Who repaired the Tern?", wait_for=token, wait_seconds=30)
        assert found == ["Anna Berg repaired the Tern at Dock Nine."]
        put(server.url, "b", "Carla repaired the Heron.")
        assert len(ask(server.url, "Who repaired what?", max_staleness=0, wait_seconds=30)) == 2
        deleted = httpx.delete(f"{server.url}/v1/namespaces/ns/documents/a").json()["token"]
        found = ask(server.url, "Who repaired the Tern?", wait_for=deleted, wait_seconds=30)
        assert found == ["Carla repaired the Heron."]
        lags = ("gistream_lag_events", "gistream_lag_seconds")
        wait_until(lambda: [metric(server.url, lag) for lag in lags] == [0, 0], what="catching up", timeout=30)
        answer = httpx.get(f"{server.url}/v1/namespaces/ns/documents/b").json()
        assert 0 < answer["staleness_seconds"] < 10
        missing = {"question": "Who?", "max_staleness": 0, "wait_seconds": 30}
        answer = httpx.post(f"{server.url}/v1/namespaces/nowhere/retrieve", json=missing, timeout=60)
        assert answer.status_code == 404


@pytest.mark.slow
def test_a_broker_that_goes_and_comes_back(
    kafka_installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streams.topics import create

    monkeypatch.setattr("streams.connection.BOOTSTRAP_SECONDS", 1.0)
    monkeypatch.setattr("streams.producer.DELIVERY_SECONDS", 2.0)
    monkeypatch.setattr("streams.producer.BLOCK_SECONDS", 2.0)
    monkeypatch.setattr("streams.producer._REQUEST_SECONDS", 1.0)
    monkeypatch.setattr("deploy.progress.SILENT_SECONDS", 60.0)
    with Cluster(tmp_path / "kafka") as cluster:
        found = settings(tmp_path / "data", cluster.bootstrap)
        create(connection(found), LAYOUT)
        with Streaming(found) as server:
            first = put(server.url, "a", "Anna.")
            ready = f"{server.url}/health/ready"
            wait_until(lambda: httpx.get(ready).status_code == 200, what="being ready", timeout=60)
            cluster.stop()
            answer = httpx.put(f"{server.url}/v1/namespaces/ns/documents/a", json={"text": "Anna."}, timeout=60)
            assert answer.status_code == 503
            assert "sending all of them again does no harm" in answer.json()["hint"]
            monkeypatch.setattr("deploy.progress.SILENT_SECONDS", 2.0)
            wait_until(lambda: httpx.get(ready).status_code == 503, what="not being ready", timeout=60)
            assert httpx.get(f"{server.url}/health/live").status_code == 200
            refused = httpx.put(f"{server.url}/v1/namespaces/ns/documents/a", json={"text": "Anna."}, timeout=60)
            assert refused.status_code == 503
            assert "could not be stored" not in refused.json()["detail"], "known to be away, it is not tried"
            cluster.start()
            wait_until(lambda: httpx.get(ready).status_code == 200, what="being ready again", timeout=60)
            again = put(server.url, "a", "Anna again.")
            assert again.partition(":")[0] == first.partition(":")[0]
