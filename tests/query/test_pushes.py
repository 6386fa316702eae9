"""Pushing bodies over HTTP: what is stored, what is refused, and who may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .served import Served, serving

PUSH = "/v1/namespaces/ns/push"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as running:
        yield running


def typed(media_type: str) -> dict[str, str]:
    return {"Content-Type": media_type}


def test_a_text_becomes_a_document(served: Served) -> None:
    body = "Anna Berg repaired the Tern."
    answer = served.client.post(f"{PUSH}/a/b.txt?title=The+Tern", content=body, headers=typed("text/plain"))
    assert (answer.status_code, answer.json()) == (202, {"token": "log:1", "ids": ["a/b.txt"], "refused": []})
    served.settle()
    stored = served.client.get("/v1/namespaces/ns/documents/a/b.txt").json()
    assert (stored["title"], stored["text"]) == ("The Tern", body)
    assert 'gistream_events_accepted_total{op="upsert"} 1.0' in served.client.get("/metrics").text


def test_a_page_in_its_own_letters(served: Served) -> None:
    page = "<title>Bär</title><p>Größe".encode("latin-1")
    [id] = served.client.post(PUSH, content=page, headers=typed("text/html; charset=latin-1")).json()["ids"]
    again = served.client.post(PUSH, content=page, headers=typed("text/html; charset=latin-1")).json()
    assert again["ids"] == [id]
    served.settle()
    assert served.client.get("/v1/status").json()["namespaces"]["ns"]["documents"] == 1
    assert served.client.get(f"/v1/namespaces/ns/documents/{id}").json()["text"] == "Größe"


def test_lines_that_are_no_documents_are_told_and_kept(served: Served) -> None:
    body = b'{"id": "a", "text": "Anna."}\n{"id": "b"}\n"Bert."\n'
    answer = served.client.post(PUSH, content=body, headers=typed("application/x-ndjson")).json()
    assert len(answer["ids"]) == 2 and answer["ids"][0] == "a" and answer["token"] == "log:2"
    assert [refused["place"] for refused in answer["refused"]] == ["line 2"]
    [letter] = served.runner.letters.waiting()
    assert (letter.source, letter.namespace, letter.payload) == ("push, line 2", "ns", b'{"id": "b"}')


@pytest.mark.parametrize(
    ("media_type", "body", "kind"),
    [
        ("application/x-ndjson", b"broken\n7", "invalid-fields"),
        ("application/x-ndjson", b"", "invalid-fields"),
        ("application/json", b'{"greeting": "hello"}', "invalid-fields"),
        ("application/pdf", b"no PDF", "invalid-event"),
        ("text/plain", b"\xff", "invalid-event"),
    ],
)
def test_where_nothing_is_a_document_nothing_is_stored(served: Served, media_type: str, body: bytes, kind: str) -> None:
    answer = served.client.post(PUSH, content=body, headers=typed(media_type))
    assert answer.status_code == 422
    assert answer.json()["type"].endswith(kind)
    assert served.log.last_position() == 0
    assert served.runner.letters.count() == 0


def test_only_types_that_can_be_read(served: Served) -> None:
    for headers in ({}, typed("image/png"), typed("multipart/form-data"), typed("application/x-www-form-urlencoded")):
        answer = served.client.post(PUSH, content=b"x", headers=headers)
        assert answer.status_code == 415, headers
        assert "text/plain" in answer.json()["hint"]
    assert served.client.post(f"{PUSH}/a", json={"text": "x"}).status_code == 400


def test_a_page_of_somewhere_else_may_not_push(served: Served) -> None:
    for origin, status in (("https://evil.example", 403), ("null", 403), ("http://testserver", 202)):
        answer = served.client.post(PUSH, content=b"x", headers=typed("text/plain") | {"Origin": origin})
        assert answer.status_code == status, origin
    assert served.log.last_position() == 1


def test_who_only_reads_takes_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, read_only=True) as running:
        assert running.client.post(PUSH, content=b"x", headers=typed("text/plain")).status_code == 405
