"""Bodies that are pushed: what becomes a document, and under which id."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidEvent
from index.types import DocumentEvent
from query.bodies import PUSHABLE
from streams.feeds.base import Rejected
from streams.feeds.push import MANY, ONE, document, documents


def read(body: bytes | Any, media_type: str = "application/x-ndjson") -> list[DocumentEvent | Rejected]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    found: list[DocumentEvent | Rejected] = []
    for step in documents(data, media_type, "notes"):
        found += [*step.events, *step.rejected]
    return found


def test_the_service_takes_what_can_be_read() -> None:
    assert set(PUSHABLE) == ONE | MANY
    assert not ONE & MANY


def test_equal_bodies_without_id_are_one_document() -> None:
    first, again = (document(b"Anna.", "text/plain", "notes") for _ in range(2))
    other = document(b"Bert.", "text/plain", "notes")
    assert first == again
    assert first.id != other.id
    assert document(b"Anna.", "text/plain", "notes", id="a", title="T").title == "T"


def test_a_page_has_its_own_title_and_letters() -> None:
    event = document("<title>Bär</title><p>Größe".encode("latin-1"), "text/html", "notes", charset="iso-8859-1")
    assert (event.title, event.text) == ("Bär", "Größe")


def test_what_cannot_be_read_says_why() -> None:
    with pytest.raises(InvalidEvent, match=r"document 'a' of namespace 'notes': .*not UTF-8"):
        document(b"\xff", "text/plain", "notes", id="a")


def test_lines_of_every_form() -> None:
    lines = [
        b'"A text."',
        b'{"text": "An object.", "id": "o", "colour": "red", "metadata": {"size": 1}}',
        b"",
        b'{"op": "delete", "id": "gone"}',
        b'{"message": "no text"}',
        b"{broken",
        b"7",
        b'{"text": "x", "namespace": "other"}',
        b'"\xff"',
        b'"Last."',
    ]
    text, full, deletion, *flaws, last = read(b"\n".join(lines))
    assert isinstance(text, DocumentEvent) and text.text == "A text." and text.id.startswith("push/")
    assert isinstance(full, DocumentEvent) and full.metadata == {"colour": "red", "size": 1}
    assert deletion == DocumentEvent(op="delete", namespace="notes", id="gone")
    assert [flaw.place for flaw in flaws if isinstance(flaw, Rejected)] == [f"line {n}" for n in range(5, 10)]
    assert isinstance(last, DocumentEvent) and last.text == "Last."


def test_one_json_value_or_a_list_of_them() -> None:
    [one] = read({"text": "Anna.", "id": "a"}, "application/json")
    assert isinstance(one, DocumentEvent) and one.id == "a"
    assert read([{"text": "Anna.", "id": "a"}, 7], "application/json")[0] == one
    [flaw] = read(b"{", "application/json")
    assert isinstance(flaw, Rejected) and flaw.place == "the body"
    assert read([], "application/json") == []


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["id", "text", "op", "metadata", "x"])
    return st.lists(inner, max_size=3) | st.dictionaries(names, inner)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), _nested, max_leaves=8))
def test_no_value_breaks_it(value: Any) -> None:
    for item in read(value, "application/json"):
        assert isinstance(item, DocumentEvent) or item.reason
