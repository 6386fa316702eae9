"""Whatever is sent, the answer is right or a problem document, and the service goes on."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import index.errors
import query.problems
from index.errors import GistreamError, InvalidEvent, ModelUnavailable, SnapshotGone, StoreError, Torn, WriterFenced
from index.types import DocumentEvent
from query.problems import STATUSES, status_of
from tests.query.served import Served, serving

JSON = {"Content-Type": "application/json"}
ONE = "/v1/namespaces/ns/documents/doc"
MANY = "/v1/namespaces/ns/documents"
ASK = "/v1/namespaces/ns/retrieve"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("data")) as served:
        served.put("there", "Anna met Bert.")
        served.settle()
        yield served


def problem(response: Any, status: int, kind: str) -> dict[str, Any]:
    """The problem document of `response`, which has to be a good one."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["type"].rsplit(":")[-1] == kind
    assert document["title"] and document["detail"] and document["hint"] and document["instance"].startswith("/")
    return document


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"", 400, "bad-request"),
        (b"not json", 400, "bad-request"),
        (b'{"text": "cut off', 400, "bad-request"),
        (b"\xff\xfe", 400, "bad-request"),
        (b"[1, 2]", 400, "bad-request"),
        (b'"text"', 400, "bad-request"),
        (b"[" * 100_000, 400, "bad-request"),
        (b'{"text": "a", "text": "b"}', 400, "bad-request"),
        (b'{"text": "\\ud800"}', 422, "invalid-event"),
        (b'{"text": 7}', 422, "invalid-event"),
        (b'{"text": null}', 422, "invalid-event"),
        (b'{"txet": "a"}', 422, "invalid-event"),
        (b'{"id": "another"}', 422, "invalid-event"),
        (b'{"op": "delete"}', 422, "invalid-event"),
        (b'{"version": -1}', 422, "invalid-event"),
        (b'{"version": 9223372036854775808}', 422, "invalid-event"),
        (b'{"version": "7"}', 422, "invalid-event"),
        (b'{"event_time": 17}', 422, "invalid-event"),
        (b'{"event_time": "yesterday"}', 422, "invalid-event"),
        (b'{"metadata": {"x": NaN}}', 422, "invalid-event"),
        (b'{"metadata": {"\\udfff": 1}}', 422, "invalid-event"),
        (b'{"metadata": []}', 422, "invalid-event"),
        (b'{"text": "' + b"x" * (17 * 2**20) + b'"}', 422, "invalid-event"),
    ],
)
def test_bodies_that_are_no_document(served: Served, body: bytes, status: int, kind: str) -> None:
    before = served.log.last_position()
    problem(served.client.put(ONE, content=body, headers=JSON), status, kind)
    assert served.log.last_position() == before


def test_text_of_any_other_kind_is_stored(served: Served) -> None:
    text = "nul \0, right to left \u202e, private \ue000, \U0001f30a, \ufffe"
    served.put("odd", text)
    served.settle()
    assert served.client.get("/v1/namespaces/ns/documents/odd").json()["text"] == text


@pytest.mark.parametrize("media_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_has_to_say_that_it_is_json(served: Served, media_type: str | None) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    problem(served.client.post(MANY, content=b'[{"id": "x"}]', headers=headers), 415, "unsupported-media-type")
    also = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert served.client.post(MANY, content=b'[{"id": "x"}]', headers=also).status_code == 202


def test_a_body_is_refused_before_it_is_read_to_its_end(served: Served) -> None:
    announced = JSON | {"Content-Length": str(65 * 2**20)}
    problem(served.client.put(ONE, content=b"{}", headers=announced), 413, "too-large")
    question = JSON | {"Content-Length": str(2**20)}
    problem(served.client.post(ASK, content=b"{}", headers=question), 413, "too-large")
    unannounced = (b" " * 2**16 for _ in range(5))
    problem(served.client.post(ASK, content=unannounced, headers=JSON), 413, "too-large")


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"{}", 422, "invalid-fields"),
        (b"[]", 422, "invalid-fields"),
        (b"nothing", 400, "bad-request"),
        (b'{"question": 7}', 422, "invalid-fields"),
        (b'{"question": "a", "k": "10"}', 422, "invalid-fields"),
        (b'{"question": "a", "k": 1.5}', 422, "invalid-fields"),
        (b'{"question": "a", "k": 1e400}', 422, "invalid-fields"),
        (b'{"question": "a", "explain": "yes"}', 422, "invalid-fields"),
        (b'{"question": "a", "modus": "dense"}', 422, "invalid-fields"),
        (b'{"question": "\\ud800"}', 422, "invalid-fields"),
        (b'{"question": "a", "wait_for": "log:1", "wait_seconds": NaN}', 422, "invalid-fields"),
        (b'{"question": "a", "wait_for": "log:1", "wait_seconds": -1}', 422, "invalid-fields"),
        (b'{"question": "a", "wait_for": "log:1", "wait_seconds": 31}', 400, "bad-request"),
        (b'{"question": "a", "wait_for": "soon"}', 400, "bad-request"),
        (b'{"question": "a", "wait_for": ""}', 400, "bad-request"),
        (b'{"question": "  "}', 400, "bad-request"),
        (b'{"question": "a", "k": 0}', 400, "bad-request"),
        (b'{"question": "a", "k": 201}', 400, "bad-request"),
        (b'{"question": "a", "mode": "oracle"}', 400, "bad-request"),
        (b'{"question": "' + b"x" * 30_000 + b'"}', 400, "bad-request"),
    ],
)
def test_questions_that_make_no_sense(served: Served, body: bytes, status: int, kind: str) -> None:
    document = problem(served.client.post(ASK, content=body, headers=JSON), status, kind)
    if kind == "invalid-fields":
        assert document["errors"][0].keys() == {"field", "reason"}


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/v1/namespaces/ns/documents/missing", 404, "not-found"),
        ("GET", "/v1/namespaces/nowhere/documents/doc", 404, "not-found"),
        ("GET", "/v1/namespaces/NO%20SPACE/documents/doc", 404, "not-found"),
        ("GET", "/v1/namespaces/nowhere/snapshots", 404, "not-found"),
        ("GET", "/v1/namespaces/ns/snapshots?limit=0", 422, "invalid-fields"),
        ("GET", "/v1/namespaces/ns/documents/%FF", 400, "bad-request"),
        ("DELETE", "/v1/namespaces/ns/documents/%FF", 400, "bad-request"),
        ("DELETE", "/v1/namespaces/ns/documents/doc?version=new", 422, "invalid-fields"),
        ("DELETE", "/v1/namespaces/ns/documents/doc?version=-1", 422, "invalid-event"),
        ("DELETE", "/v1/namespaces/ns/documents/", 422, "invalid-event"),
        ("DELETE", "/v1/namespaces/ns/documents/" + 513 * "x", 422, "invalid-event"),
        ("DELETE", "/v1/namespaces/Ns/documents/doc", 422, "invalid-event"),
        ("GET", "/", 404, "not-found"),
        ("GET", "/v2/namespaces", 404, "not-found"),
        ("PATCH", "/v1/namespaces/ns/documents/doc", 405, "method-not-allowed"),
        ("POST", "/health/live", 405, "method-not-allowed"),
    ],
)
def test_addresses_that_make_no_sense(served: Served, method: str, path: str, status: int, kind: str) -> None:
    before = served.log.last_position()
    document = problem(served.client.request(method, path), status, kind)
    assert document["instance"] == path.partition("?")[0]
    assert served.log.last_position() == before


def test_a_batch_is_taken_whole_or_not_at_all(served: Served) -> None:
    before = served.log.last_position()
    batch: list[object] = [
        {"id": "a"},
        {"id": ""},
        7,
        {"id": "d", "namespace": "other"},
        {"text": "no id"},
        {"id": "\ud800"},
    ]
    document = problem(served.client.post(MANY, content=json.dumps(batch), headers=JSON), 422, "invalid-fields")
    assert [(error["index"], error["id"]) for error in document["errors"]] == [
        (1, ""),
        (2, None),
        (3, "d"),
        (4, None),
        (5, "\ud800"),
    ]
    assert all(error["reason"] for error in document["errors"])
    for empty in (b"[]", b"{}", b"null"):
        problem(served.client.post(MANY, content=empty, headers=JSON), 400, "bad-request")
    assert served.log.last_position() == before


def test_a_write_that_is_not_visible_in_time(served: Served) -> None:
    token = served.put("late", "Carla came late.")
    started = time.monotonic()
    asked = {"question": "Carla", "wait_for": token, "wait_seconds": 0.2}
    document = problem(served.client.post(ASK, json=asked), 504, "not-yet")
    assert 0.2 <= time.monotonic() - started < 5
    assert token in document["detail"]
    nowhere = served.client.post("/v1/namespaces/never/retrieve", json=asked | {"wait_seconds": 0})
    assert "there is no namespace never" in problem(nowhere, 504, "not-yet")["detail"]
    served.settle()
    assert served.retrieve("Carla", wait_for=token, wait_seconds=0)["passages"]


def test_a_service_that_only_reads_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, read_only=True) as served:
        for response in (
            served.client.put(ONE, json={}),
            served.client.delete(ONE),
            served.client.post(MANY, json=[{"id": "a"}]),
        ):
            problem(response, 405, "read-only")
            assert response.headers["allow"] == "GET"


def test_not_ready_says_why(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.why_not_ready.append("indexing has stopped: WriterFenced: another one took over")
        response = served.client.get("/health/ready")
        assert "another one took over" in problem(response, 503, "not-ready")["detail"]
        assert response.headers["retry-after"]
        assert served.client.get("/health/live").status_code == 200


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (StoreError("log.db: disk full", hint="free space"), 503, "store-error"),
        (Torn("manifest 7 is damaged"), 500, "torn"),
        (SnapshotGone("snapshot 3 is beyond the retention"), 410, "snapshot-gone"),
        (ModelUnavailable("no answer from the endpoint", hint="try later"), 503, "model-unavailable"),
        (WriterFenced("another writer took over"), 500, "writer-fenced"),
    ],
)
def test_errors_of_the_parts(
    served: Served, monkeypatch: pytest.MonkeyPatch, error: GistreamError, status: int, kind: str
) -> None:
    def fail(events: Sequence[DocumentEvent]) -> list[str]:
        raise error

    monkeypatch.setattr(served.log, "append", fail)
    document = problem(served.client.put(ONE, json={}), status, kind)
    assert document["detail"] == error.message
    assert error.hint in document["hint"]


def test_what_nobody_foresaw_is_logged_and_not_told(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(events: Sequence[DocumentEvent]) -> list[str]:
        raise RuntimeError("the secret of " + events[0].text)

    monkeypatch.setattr(served.log, "append", fail)
    with caplog.at_level(logging.ERROR, "query.problems"):
        response = served.client.put(ONE, json={"text": "Zanzibar"})
    assert "Zanzibar" not in json.dumps(problem(response, 500, "internal-error"))
    [record] = caplog.records
    assert record.exc_info is not None
    assert served.client.get("/health/live").status_code == 200


def test_every_error_has_a_status() -> None:
    kinds = [kind for module in (index.errors, query.problems) for kind in vars(module).values()]
    errors = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, GistreamError)}
    assert set(STATUSES) <= errors
    for kind in errors:
        error = kind("what", []) if kind is query.problems.InvalidFields else kind("what")
        assert 400 <= status_of(error) <= 599
    assert status_of(InvalidEvent("what")) == 422


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["id", "op", "v", "namespace", "title", "text", "metadata", "event_time", "version", "question", "k"]
)


@settings(max_examples=40)
@given(body=st.dictionaries(FIELDS, ANY_JSON, max_size=4) | ANY_JSON | st.binary(max_size=20))
def test_no_body_is_a_surprise(served: Served, body: object) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    for method, path in (("PUT", ONE), ("POST", MANY), ("POST", ASK)):
        response = served.client.request(method, path, content=content, headers=JSON)
        assert response.status_code in (200, 202, 400, 422), response.text
        json.loads(response.text)
