"""The embedded server over real sockets, and as a real process that is told to stop."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.assembly import build_pipeline, log_path
from deploy.embedded import Embedded
from deploy.settings import Settings
from index.errors import BadRequest, WriterBusy, WriterFenced
from index.home import Home
from index.reader import Reader
from streams.apply import Applied
from streams.local import Runner
from streams.log import Log
from tests.support import wait_until

from .running import process


def settings(data: Path, **others: Any) -> Settings:
    return Settings(data=data, port=0, embedding_dimensions=64, **others)


def put(url: str, id: str, text: str) -> str:
    answer = httpx.put(f"{url}/v1/namespaces/ns/documents/{id}", json={"text": text}, timeout=30)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["token"])


def ask(url: str, question: str, **fields: Any) -> list[str]:
    body = {"question": question, "wait_seconds": 20, **fields}
    answer = httpx.post(f"{url}/v1/namespaces/ns/retrieve", json=body, timeout=30)
    assert answer.status_code == 200, answer.text
    return [passage["text"] for passage in answer.json()["passages"]]


def test_what_is_written_is_found_and_what_is_deleted_is_gone(tmp_path: Path) -> None:
    with Embedded(settings(tmp_path)) as server:
        token = put(server.url, "a/b", "Anna Berg repaired the Tern at Dock Nine.")
        assert ask(server.url, "Who repaired the Tern?", wait_for=token) == [
            "Anna Berg repaired the Tern at Dock Nine."
        ]
        put(server.url, "later", "Carla stayed at home.")
        later = f"{server.url}/v1/namespaces/ns/documents/later"
        wait_until(lambda: httpx.get(later).status_code == 200, what="seeing it without waiting for it")
        httpx.delete(later)
        deleted = httpx.delete(f"{server.url}/v1/namespaces/ns/documents/a/b").json()["token"]
        assert ask(server.url, "Who repaired the Tern?", wait_for=deleted) == []
        wait_until(lambda: httpx.get(f"{server.url}/health/ready").json() == {"status": "ready"}, what="being ready")
        metrics = httpx.get(f"{server.url}/metrics").text
        assert 'gistream_events_accepted_total{op="delete"} 2.0' in metrics
        assert re.search(r"^gistream_commits_total [34]\.0$", metrics, re.MULTILINE)
        assert "gistream_lag_seconds 0.0" in metrics and "gistream_lag_events 0.0" in metrics
        assert "gistream_freshness_seconds_count 4.0" in metrics and "gistream_texts_embedded_total" in metrics
        assert 'gistream_namespaces_open{role="writer"} 1.0' in metrics
    with Embedded(settings(tmp_path)) as server:
        assert httpx.get(f"{server.url}/v1/status").json()["namespaces"]["ns"]["documents"] == 0


def test_an_answer_is_not_held_back_by_the_network_stack(tmp_path: Path) -> None:
    with Embedded(settings(tmp_path)) as server, httpx.Client(base_url=server.url) as client:
        took = [client.get("/health/live").elapsed.total_seconds() for _ in range(30)]
    assert min(took[1:]) < 0.03, "delayed acknowledgements add 0.04 s to each"


def test_bytes_that_are_no_address_do_not_harm(tmp_path: Path) -> None:
    with Embedded(settings(tmp_path)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        for line in (b"GET /\xff\xfe HTTP/1.1", b"PUT /v1/namespaces/ns/documents/%ff HTTP/1.1", b"\0\0\0", b"GET"):
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                connection.sendall(line + b"\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert b" 400 " in connection.recv(100)
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            # A client that hangs up in the middle of its body.
            head = b"PUT /v1/namespaces/ns/documents/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            connection.sendall(head + b"Content-Length: 1000\r\n\r\n{")
        assert httpx.get(f"{server.url}/v1/namespaces").json() == {"namespaces": []}


def test_one_process_writes_and_others_only_read(tmp_path: Path) -> None:
    with Embedded(settings(tmp_path)) as writer:
        token = put(writer.url, "a", "Bert sailed to Falkirk.")
        with pytest.raises(WriterBusy), Embedded(settings(tmp_path)):
            pass
        with Embedded(settings(tmp_path), read_only=True) as reader:
            assert ask(reader.url, "Who sailed?", wait_for=token) == ["Bert sailed to Falkirk."]
            assert httpx.delete(f"{reader.url}/v1/namespaces/ns/documents/a").status_code == 405
            assert httpx.get(f"{reader.url}/v1/status").json()["dead_letters"] == 0
        assert ask(writer.url, "Who sailed?") == ["Bert sailed to Falkirk."]


def test_a_reader_over_an_empty_folder_makes_nothing_in_it(tmp_path: Path) -> None:
    with Embedded(settings(tmp_path), read_only=True) as reader:
        nothing: dict[str, object] = {"namespaces": {}, "dead_letters": None, "feeds": {}, "rebuilding": {}}
        assert httpx.get(f"{reader.url}/v1/status").json() == nothing
        wait_until(lambda: httpx.get(f"{reader.url}/health/ready").status_code == 200, what="being ready")
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_taken_is_told_and_leaves_nothing_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadRequest, match=f"cannot listen on 127.0.0.1:{port}"):
            Embedded(settings(tmp_path).model_copy(update={"port": port})).__enter__()
    with Embedded(settings(tmp_path)) as server:
        assert httpx.get(f"{server.url}/health/live").status_code == 200


def test_a_runner_that_stopped_makes_the_server_unready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fenced(*_: object) -> Applied:
        raise WriterFenced("another writer took over")

    monkeypatch.setattr("streams.batch.apply", fenced)
    with Embedded(settings(tmp_path)) as server:
        put(server.url, "a", "Anna.")
        said = "indexing has stopped: WriterFenced: another writer took over"
        wait_until(lambda: httpx.get(f"{server.url}/health/ready").json().get("detail") == said, what="saying so")
        assert put(server.url, "b", "Bert."), "what comes is still stored"
        assert httpx.get(f"{server.url}/health/live").status_code == 200


def test_told_to_stop_it_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[str] = []

    def write(url: str, writer: int) -> None:
        with httpx.Client(base_url=url, timeout=30) as client:
            for count in range(10_000):
                id = f"{writer}-{count}"
                try:
                    answer = client.put(f"/v1/namespaces/ns/documents/{id}", json={"text": f"Anna wrote {id}."})
                except httpx.TransportError:
                    return
                if answer.status_code == 202:
                    acknowledged.append(id)

    with process(tmp_path) as (running, url):
        writers = [threading.Thread(target=write, args=(url, writer)) for writer in range(3)]
        for writer in writers:
            writer.start()
        wait_until(lambda: len(acknowledged) > 50, what="fifty acknowledged writes", timeout=60)
        running.terminate()
        assert running.wait(60) == 0
        for writer in writers:
            writer.join()
    again = settings(tmp_path).model_copy(update={"embedding_dimensions": None})
    with Log(log_path(again)) as log, Runner(Home(tmp_path), log, build_pipeline(again)) as runner:
        runner.drain()
    found = Reader(Home(tmp_path).incarnation("ns")).snapshot.documents_by_id(acknowledged)
    assert set(found) == set(acknowledged)
