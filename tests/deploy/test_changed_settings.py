"""A server that is started with another embedder answers as before and makes its namespaces anew, also when killed."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.assembly import build_pipeline
from deploy.embedded import Embedded
from deploy.settings import Settings
from index.errors import WrongFingerprint
from index.home import Home
from index.manifest import Fingerprint
from index.reader import Reader
from streams.rebuild import verify

from ..index.embedding_endpoint import Endpoint, serving
from ..support import wait_until
from .running import process, said

DOCUMENTS = 150


def put(url: str, *ids: str) -> str:
    documents = [{"id": id, "text": f"Anna Berg repaired the boat {id} at Dock Nine."} for id in ids]
    answer = httpx.post(f"{url}/v1/namespaces/ns/documents", json=documents, timeout=30)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["token"])


def ask(url: str, question: str, **fields: Any) -> dict[str, Any]:
    body = {"question": question, "mode": "dense", "k": 3, "wait_seconds": 20, **fields}
    answer = httpx.post(f"{url}/v1/namespaces/ns/retrieve", json=body, timeout=30)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def made(data: Path) -> Fingerprint:
    return Reader(Home(data).incarnation("ns")).snapshot.manifest.fingerprint


def rebuilding(url: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/v1/status", timeout=30).json()["rebuilding"]
    return found


@pytest.mark.slow
def test_killed_in_the_middle_of_a_rebuild_it_answers_and_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with process(data, embedder="hashing", embedding_dimensions=64) as (running, url):
        token = put(url, *(f"a{number}" for number in range(DOCUMENTS)))
        before = ask(url, "Who repaired the boat a7?", wait_for=token)
        running.terminate()
        assert running.wait(60) == 0
    with serving() as endpoint:
        other = {"embedder": "openai", "embedding_base_url": endpoint.url, "embedding_model": "m"}
        answer = endpoint.answer
        endpoint.answer = partial(held, endpoint)  # type: ignore[method-assign]
        with process(data, **other) as (running, url):
            wait_until(lambda: rebuilding(url).get("ns", {}).get("done", 0) > 0, timeout=60, what="a rebuild under way")
            assert ask(url, "Who repaired the boat a7?")["passages"] == before["passages"], "the former embedder asks"
            late = put(url, "late")
            assert made(data).embedder == "hashing:1:64"
            running.kill()
            running.wait()
        endpoint.answer = answer  # type: ignore[method-assign]
        endpoint.pause.set()
        with process(data, **other) as (running, url):
            assert ask(url, "Which boat is late?", wait_for=late)["passages"]
            wait_until(lambda: not rebuilding(url), timeout=60, what="the end of the rebuild")
            assert ask(url, "Which boat is late?", mode="bm25")["passages"][0]["document"] == "late"
            assert "is made anew from its 150 documents" in said(data)
            status = httpx.get(f"{url}/v1/status", timeout=30).json()["namespaces"]["ns"]
            assert status["documents"] == DOCUMENTS + 1
            running.terminate()
            assert running.wait(60) == 0
        now = Settings.model_validate({"data": data, **other})
        pipeline = build_pipeline(now)
        assert made(data) == pipeline.fingerprint
        assert not list(verify(Home(data), "ns", pipeline))
        bought = Counter(text for text in endpoint.sent() if text.endswith("at Dock Nine."))
        twice = {re.findall(r"boat (\w+)", text)[0] for text, times in bought.items() if times > 1}
        assert len(twice) <= 64 and max(bought.values()) <= 2, "at most the batch under way is paid for twice"


def held(endpoint: Endpoint, request: dict[str, Any]) -> dict[str, Any]:
    """Answer, and let the endpoint pause before its next answer once it has seen a batch of passages."""
    if sum("repaired the boat" in text for text in endpoint.sent()) >= 64:
        endpoint.pause.clear()
    return Endpoint.answer(endpoint, request)


def test_another_length_of_vectors_is_switched_to_and_a_reader_follows(tmp_path: Path) -> None:
    former = Settings(data=tmp_path, port=0, embedding_dimensions=64)
    with Embedded(former) as server:
        token = put(server.url, "a", "b")
        ask(server.url, "Anna?", wait_for=token)
    now = former.model_copy(update={"embedding_dimensions": 128})
    with Embedded(former, read_only=True) as reader, Embedded(now) as server:
        token = put(server.url, "c")
        for url in (server.url, reader.url):
            assert len(ask(url, "Anna?", wait_for=token)["passages"]) == 3
        assert rebuilding(server.url) == {}
        assert "gistream_rebuilds_total 1.0" in httpx.get(f"{server.url}/metrics").text
    assert made(tmp_path) == build_pipeline(now).fingerprint
    assert not list(verify(Home(tmp_path), "ns", build_pipeline(now)))


def test_where_it_is_not_wanted_its_events_wait(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    former = Settings(data=tmp_path, port=0, embedding_dimensions=64)
    with Embedded(former) as server:
        ask(server.url, "Anna?", wait_for=put(server.url, "a"))
    kept = former.model_copy(update={"embedding_dimensions": 128, "rebuild_on_change": False})
    with Embedded(kept) as server:
        put(server.url, "b")
        wait_until(lambda: WrongFingerprint.__name__ in caplog.text, what="saying so")
        assert len(ask(server.url, "Anna?")["passages"]) == 1
    assert made(tmp_path) == build_pipeline(former).fingerprint
