"""The service as its clients see it: write, wait, ask, delete, over the real index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query.retrieve import MODES
from streams.letter import DeadLetter
from tests.query.served import Served, serving
from tests.support import wait_until

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda id: len(id.encode()) <= 512
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("data")) as served:
        yield served


def test_a_write_is_answered_with_a_token_that_a_question_may_wait_for(served: Served) -> None:
    served.put("crew", "Anna repaired the Tern at Dock Nine.", "waited", title="Crew", metadata={"kind": "log"})
    answers = []
    asking = Thread(
        target=lambda: answers.append(
            served.retrieve("Who repaired the Tern?", "waited", wait_for="log:1", wait_seconds=30, k=3)
        )
    )
    asking.start()
    served.runner.drain()
    asking.join()
    [answer] = answers
    [passage] = answer["passages"]
    assert passage["document"] == "crew"
    assert passage["text"] == "Anna repaired the Tern at Dock Nine."
    assert passage["metadata"] == {"kind": "log"}
    assert answer["snapshot"] >= 2
    assert answer["watermark"] is not None
    assert answer["staleness_seconds"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_answers_and_explains(served: Served, mode: str) -> None:
    token = served.put("one", "Bert sailed to Falkirk with Carla.", "modes")
    served.settle()
    answer = served.retrieve("Who sailed to Falkirk?", "modes", mode=mode, wait_for=token, explain=True)
    assert answer["mode"] == mode
    assert [passage["document"] for passage in answer["passages"]] == ["one"]
    assert answer["passages"][0]["why"]
    assert served.retrieve("Who sailed?", "modes", mode=mode)["explanation"] is None


def test_cogito_shows_seeds_entities_and_the_facts_that_led_to_a_passage(served: Served) -> None:
    served.put("one", "Dora wrote to Emil.", "explained")
    served.settle()
    answer = served.retrieve("Dora wrote to Emil", "explained", mode="cogito", explain=True)
    [read] = answer["explanation"]["questions"]
    assert {seed["entity"] for seed in read["seeds"]} == {"Dora", "Emil"}
    assert {active["entity"] for active in read["entities"]} == {"Dora", "Emil"}
    assert [fact["fact"] for fact in answer["passages"][0]["why"]["facts"]] == ["Dora beside Emil"]


def test_a_deleted_document_is_in_no_answer(served: Served) -> None:
    served.put("secret", "The codeword is Xylophone.", "deleted")
    served.put("other", "The weather is fine.", "deleted")
    served.settle()
    assert "Xylophone" in json.dumps(served.retrieve("the codeword", "deleted"))
    answer = served.client.delete("/v1/namespaces/deleted/documents/secret")
    assert answer.status_code == 202
    served.settle()
    for mode in MODES:
        found = served.retrieve("the codeword Xylophone", "deleted", mode=mode, wait_for=answer.json()["token"])
        assert "Xylophone" not in json.dumps(found["passages"])
    gone = served.client.get("/v1/namespaces/deleted/documents/secret")
    assert gone.status_code == 404
    assert "was deleted" in gone.json()["detail"]


def test_versions_order_the_writes_of_a_document(served: Served) -> None:
    served.put("doc", "the newer", "versions", version=7)
    served.put("doc", "the older", "versions", version=3)
    served.client.delete("/v1/namespaces/versions/documents/doc?version=6")
    served.settle()
    document = served.client.get("/v1/namespaces/versions/documents/doc").json()
    assert (document["text"], document["version"]) == ("the newer", 7)


def test_a_document_comes_back_as_it_was_sent(served: Served) -> None:
    sent = {"title": "Tide", "metadata": {"b": [1, None, "x"], "a": 0.5}, "event_time": "1912-04-15T02:20:00+01:00"}
    served.put("tide", "High water at noon.\n", "stored", version=12, **sent)
    served.settle()
    document = served.client.get("/v1/namespaces/stored/documents/tide").json()
    assert document["text"] == "High water at noon.\n"
    assert document["title"] == "Tide"
    assert document["metadata"] == sent["metadata"]
    assert document["event_time"] == "1912-04-15T01:20:00Z"
    assert document["version"] == 12
    assert len(document["passages"]) == 1
    assert {"snapshot", "watermark", "staleness_seconds", "accepted_at"} <= document.keys()


@settings(max_examples=8)
@given(ids=st.lists(IDS, min_size=1, max_size=8, unique=True))
def test_an_id_may_hold_anything(served: Served, ids: list[str]) -> None:
    for number, id in enumerate(ids):
        served.put(quote(id, safe=""), f"text {number}", "anything")
    served.settle()
    for number, id in enumerate(ids):
        document = served.client.get(f"/v1/namespaces/anything/documents/{quote(id, safe='')}").json()
        assert (document["id"], document["text"]) == (id, f"text {number}")


@pytest.mark.parametrize(
    ("path", "id"),
    [
        ("a/b/c", "a/b/c"),
        ("a%2Fb", "a/b"),
        ("/rooted", "/rooted"),
        ("folder/", "folder/"),
        ("two%20words", "two words"),
        ("100%25", "100%"),
        ("nul%00byte", "nul\0byte"),
        ("%C3%BC%E6%B0%B4", "ü水"),
        ("x%3Fy%23z", "x?y#z"),
        ("line%0A", "line\n"),
        ("one%0Atwo", "one\ntwo"),
        ("%2E%2E/up", "../up"),
        ("documents/retrieve", "documents/retrieve"),
    ],
)
def test_ids_are_read_from_the_path(served: Served, path: str, id: str) -> None:
    served.put(path, "something", "paths")
    served.settle()
    document = served.client.get(f"/v1/namespaces/paths/documents/{path}")
    assert document.json()["id"] == id


def test_a_batch_is_stored_in_its_order(served: Served) -> None:
    batch = [
        {"id": "a", "text": "first"},
        {"id": "b", "text": "second", "namespace": "batch", "v": 1},
        {"op": "delete", "id": "a"},
        {"id": "b", "text": "third"},
    ]
    answer = served.client.post("/v1/namespaces/batch/documents", json=batch)
    assert answer.status_code == 202
    tokens = answer.json()["tokens"]
    assert len(set(tokens)) == 4
    assert answer.json()["token"] == tokens[-1]
    served.settle()
    assert served.client.get("/v1/namespaces/batch/documents/a").status_code == 404
    assert served.client.get("/v1/namespaces/batch/documents/b").json()["text"] == "third"


def test_what_there_is(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        nothing: dict[str, object] = {"namespaces": {}, "dead_letters": 0, "feeds": {}, "rebuilding": {}}
        assert served.client.get("/v1/status").json() == nothing
        served.put("d", "Anna met Bert.", "beta")
        served.put("d", "Carla.", "alpha")
        served.settle()
        served.runner.letters.put(DeadLetter("a feed", "decode", "not JSON", b"?"))
        assert served.client.get("/v1/namespaces").json() == {"namespaces": ["alpha", "beta"]}
        status = served.client.get("/v1/status").json()
        assert status["dead_letters"] == 1
        expected = {"documents": 1, "passages": 1, "entities": 2, "facts": 1, "snapshot": 2}
        assert status["namespaces"]["beta"] == expected
        listed = served.client.get("/v1/namespaces/beta/snapshots").json()
        assert [entry["snapshot"] for entry in listed["snapshots"]] == [2, 1]
        assert listed["snapshots"][0]["positions"] == {"log": 1}
        assert listed["snapshot"] == 2
        latest = served.client.get("/v1/namespaces/beta/snapshots?limit=1").json()
        assert [entry["snapshot"] for entry in latest["snapshots"]] == [2]


def test_an_answer_says_that_it_is_stale(served: Served) -> None:
    served.put("a", "Anna.", "stale")
    served.settle()
    served.put("b", "Bert.", "stale")
    assert served.retrieve("Anna", "stale")["staleness_seconds"] > 0
    served.settle()
    assert served.retrieve("Anna", "stale")["staleness_seconds"] == 0


def test_health_and_metrics(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert served.client.get("/health/live").json() == {"status": "live"}
        assert served.client.get("/health/ready").json() == {"status": "ready"}
        served.put("a", "Anna.")
        served.settle()
        served.retrieve("Anna")
        served.client.post("/v1/namespaces/ns/retrieve", json={"question": "Anna", "mode": "made-up"})
        text = served.client.get("/metrics").text
        assert 'gistream_events_accepted_total{op="upsert"} 1.0' in text
        assert 'gistream_queries_total{mode="fused",outcome="ok"} 1.0' in text
        assert 'gistream_queries_total{mode="unknown",outcome="bad-request"} 1.0' in text
        assert 'gistream_query_seconds_count{mode="fused"} 1.0' in text
        assert "made-up" not in text


def test_the_openapi_document_lists_every_address_and_how_errors_look(served: Served) -> None:
    document = served.client.get("/openapi.json").json()
    operations = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    one = "/v1/namespaces/{namespace}/documents/{id}"
    assert set(operations) == {
        ("PUT", one),
        ("DELETE", one),
        ("GET", one),
        ("POST", "/v1/namespaces/{namespace}/documents"),
        ("POST", "/v1/namespaces/{namespace}/push"),
        ("POST", "/v1/namespaces/{namespace}/push/{id}"),
        ("POST", "/v1/namespaces/{namespace}/retrieve"),
        ("GET", "/v1/namespaces/{namespace}/snapshots"),
        ("GET", "/v1/namespaces/{namespace}/snapshots/diff"),
        ("GET", "/v1/namespaces"),
        ("GET", "/v1/status"),
        ("GET", "/health/live"),
        ("GET", "/health/ready"),
        ("GET", "/metrics"),
    }
    assert len({operation["operationId"] for operation in operations.values()}) == len(operations)
    for (method, path), operation in operations.items():
        in_path = {given["name"] for given in operation.get("parameters", []) if given["in"] == "path"}
        assert in_path == {part[1:-1] for part in path.split("/") if part.startswith("{")}
        assert "application/problem+json" in operation["responses"]["default"]["content"]
        assert operation["description"]
        assert ("requestBody" in operation) == (method in ("PUT", "POST"))
    put = operations["PUT", one]["requestBody"]["content"]["application/json"]["schema"]
    assert set(put["properties"]) == {"title", "text", "metadata", "event_time", "version"}
    defined = document["components"]["schemas"]
    for reference in _references(document):
        assert reference.removeprefix("#/components/schemas/") in defined


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield reference
        for member in node.values():
            yield from _references(member)
    elif isinstance(node, list):
        for member in node:
            yield from _references(member)


def test_answers_are_whole_while_documents_come_and_go(tmp_path: Path) -> None:
    """Eight threads ask while every commit swaps the only living document: each answer has exactly one passage."""
    with serving(tmp_path) as served:
        served.put("d0", "Anna number 0.")
        served.settle()
        done = False
        wrong: list[object] = []
        seen: set[int] = set()

        def ask(_: int) -> None:
            while not done:
                answer = served.retrieve("Anna number", mode="bm25")
                seen.add(answer["snapshot"])
                if len(answer["passages"]) != 1:
                    wrong.append(answer)

        with ThreadPoolExecutor(8) as pool:
            asking = [pool.submit(ask, number) for number in range(8)]
            for turn in range(1, 6):
                swap = [{"op": "delete", "id": f"d{turn - 1}"}, {"id": f"d{turn}", "text": f"Anna number {turn}."}]
                assert served.client.post("/v1/namespaces/ns/documents", json=swap).status_code == 202
                served.runner.drain()
                newest = served.readers.home.incarnation("ns").joinpath("manifests")
                number = max(int(path.stem) for path in newest.glob("*.json"))
                wait_until(lambda number=number: number in seen, what=f"an answer from snapshot {number}")  # type: ignore[misc]
            done = True
            for one in asking:
                one.result()
        assert not wrong
        assert len(seen) >= 6
