"""Hostile input on the real way in: indexed as it was sent, or a dead letter with its reason; the stream goes on."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from deploy.exits import Exit
from index.home import Home
from index.reader import Reader
from index.snapshot import Snapshot
from index.types import Extraction
from streams.extract.rules import RulesExtractor

from .terminal import Terminal, lines

MIB = 2**20
DEEP: Any = []
for _ in range(100):
    DEEP = [DEEP]

INDEXED: Mapping[str, dict[str, Any]] = {
    "an empty text": {"text": ""},
    "nothing but an id": {},
    "only white space": {"text": " \n\t\u3000\u2028 "},
    "control characters": {"text": "zero \x00 one \x01 escape \x1b[2J bell \x07 end"},
    "right to left": {"text": "القط الأسود ينام \u202eتحت الشجرة\u202c. החתול ישן."},
    "without blanks between words": {"text": "黒い猫が木の下で寝ている。" * 50},
    "marks upon marks": {"text": "Z" + "\u0301\u0323" * 5_000 + "algo"},
    "pictures and joiners": {"text": "👩\u200d👩\u200d👧 " * 500},
    "the same word 100,000 times": {"text": "again " * 100_000},
    "one word of a megabyte": {"text": "a" * MIB},
    "a name after every name": {"text": " ".join(f"Name{number}" for number in range(5_000))},
    "a title of 100,000 characters": {"title": "Title " * 16_666, "text": "Short."},
    "nothing but stops": {"text": "." * 20_000},
    "nothing but line ends": {"text": "\r\n" * 50_000 + "end"},
    "an open quotation": {"text": '"' * 10_000 + "“«" * 1_000},
    "odd metadata": {"metadata": {"": None, "a.b": [{}], "$where": "DROP TABLE", "ключ": -(2**63), "x" * 200: 1e308}},
    "a time before 1970": {"text": "old", "event_time": "1969-07-20T20:17:00Z"},
    "the first year": {"text": "oldest", "event_time": "0001-01-01T00:00:00Z"},
    "the last year": {"text": "newest", "event_time": "9999-12-31T23:59:59.999999Z"},
    "the largest version": {"text": "x", "version": 2**63 - 1},
}  # fmt: skip
"""Fields of documents that are strange and still documents."""

REFUSED: Mapping[str, tuple[bytes, str]] = {
    "not JSON": (b"{", "not JSON"),
    "not UTF-8": (b'{"id": "\xff\xfe"}', "not UTF-8"),
    "binary": (bytes(range(14, 256)) * 40, "not UTF-8"),
    "a bare string": (b'"text"', "a JSON string"),
    "a lone surrogate in the text": (b'{"id": "r", "text": "\\ud800"}', "lone surrogate"),
    "a lone surrogate in the id": (b'{"id": "\\udfff", "text": "x"}', "lone surrogate"),
    "a lone surrogate in the metadata": (b'{"id": "r", "metadata": {"\\ud800": 1}}', "metadata"),
    "the same key twice": (b'{"id": "r", "id": "s"}', "twice"),
    "no id": (b'{"text": "x"}', "'id'"),
    "a long id": (b'{"id": "' + b"r" * 513 + b'"}', "512 bytes"),
    "a number as text": (b'{"id": "r", "text": 7}', "'text'"),
    "an unknown field": (b'{"id": "r", "txet": "x"}', "'txet'"),
    "an unknown op": (b'{"id": "r", "op": "drop"}', "'op'"),
    "a namespace that climbs": (b'{"id": "r", "namespace": "../../etc"}', "'namespace'"),
    "deep metadata": (json.dumps({"id": "r", "metadata": {"a": DEEP}}).encode(), "nested deeper"),
    "very deep JSON": (b'{"id": "r", "metadata": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "nested"),
    "large metadata": (json.dumps({"id": "r", "metadata": {"a": "x" * 70_000}}).encode(), "the limit is 65536"),
    "no number": (b'{"id": "r", "metadata": {"a": NaN}}', "no number of JSON"),
    "a large number": (b'{"id": "r", "metadata": {"a": 9223372036854775808}}', "64 bits"),
    "a very large number": (b'{"id": "r", "metadata": {"a": ' + b"9" * 5_000 + b"}}", "not JSON"),
    "the year 0": (b'{"id": "r", "event_time": "0000-01-01"}', "event_time"),
    "a time that is a number": (b'{"id": "r", "event_time": -1e18}', "event_time"),
    "a negative version": (b'{"id": "r", "version": -1}', "'version'"),
    "a large version": (b'{"id": "r", "version": 9223372036854775808}', "'version'"),
    "a text of 17 MiB": (b'{"id": "r", "text": "' + b"x" * (17 * MIB) + b'"}', "the limit is 16777216"),
}
"""Lines that are no documents, and what their reason says."""


def good(number: int) -> dict[str, Any]:
    return {"id": f"good/{number}", "text": f"The keeper of lamp{number} is Ann Lee."}


def between(hostile: Sequence[bytes]) -> bytes:
    """Every hostile line with a good one before and after it."""
    written = [lines(good(0)).encode()]
    for number, line in enumerate(hostile, start=1):
        written += [line, b"\n", lines(good(number)).encode()]
    return b"".join(written)


def snapshot(gistream: Terminal) -> Snapshot:
    return Reader(Home(gistream.data).incarnation("notes")).snapshot


def assert_good(gistream: Terminal, count: int) -> None:
    """The good documents are stored, and each is found by the one word that only it has."""
    stored = snapshot(gistream).documents_by_id([f"good/{number}" for number in range(count)])
    assert {id: row.text for id, row in stored.items()} == {good(n)["id"]: good(n)["text"] for n in range(count)}
    for number in (0, count // 2, count - 1):
        found = gistream.ok("search", "notes", f"lamp{number}", "--mode", "bm25", "--json").json["passages"]
        assert [passage["document"] for passage in found] == [f"good/{number}"]


def assert_whole(snapshot: Snapshot, documents: Mapping[str, dict[str, Any]]) -> None:
    """Documents are stored as they were sent, and their passages in order hold all of their text but the blanks."""
    stored = snapshot.documents_by_id([*documents])
    assert set(stored) == set(documents)
    for id, sent in documents.items():
        row = stored[id]
        assert (row.title, row.text, row.deleted) == (sent.get("title", ""), sent.get("text", ""), False), id
        assert json.loads(row.metadata) == sent.get("metadata", {}), id
        numbers = [snapshot.kinds.passages.find(key) for key in row.passages]
        rows = snapshot.passage_rows([number for number in numbers if number is not None])
        assert len(rows) == len(row.passages), id
        texts = [rows[number].text for number in numbers if number is not None]
        assert "".join("".join(texts).split()) == "".join(row.text.split()), id


def test_strange_documents_are_indexed_as_they_were_sent(gistream: Terminal) -> None:
    documents = {name: {"id": name, **fields} for name, fields in INDEXED.items()}
    written = between([json.dumps(document).encode() for document in documents.values()])
    came = gistream.ok("ingest", "notes", "-", "--json", stdin=written).json
    assert (came["events"], came["rejected"]) == (2 * len(documents) + 1, 0)
    assert_whole(snapshot(gistream), documents)
    assert_good(gistream, len(documents) + 1)
    times = {row.id: row.event_time for row in snapshot(gistream).documents_by_id([*documents]).values()}
    assert times["a time before 1970"] == -14_182_980_000_000
    found = gistream.ok("search", "notes", "تحت الشجرة", "--mode", "bm25", "--json").json["passages"]
    assert [passage["document"] for passage in found] == ["right to left"]
    assert gistream.ok("verify", "notes", "--json").json["equal"]


def test_what_is_no_document_is_a_dead_letter_with_its_reason(gistream: Terminal) -> None:
    ended = gistream("ingest", "notes", "-", "--json", stdin=between([line for line, _ in REFUSED.values()]))
    assert ended.code == Exit.REFUSED
    assert ended.json["rejected"] == len(REFUSED)
    assert_good(gistream, len(REFUSED) + 1)
    assert snapshot(gistream).manifest.counts.documents == len(REFUSED) + 1
    letters = gistream.ok("dead-letters", "list", "--json").json["letters"]
    for (name, (line, said)), letter in zip(REFUSED.items(), letters, strict=True):
        assert said in letter["reason"], name
        assert "\n" not in letter["reason"] and len(letter["reason"]) < 400, name
        assert 0 < letter["bytes"] <= max(2**16, len(line)), name
    assert gistream.ok("dead-letters", "list").out.count("standard input, line ") == len(REFUSED)


def test_of_one_id_in_one_batch_the_last_counts(gistream: Terminal) -> None:
    texts = [f"Version number{number} of it." for number in range(300)]
    gistream.ok("ingest", "notes", "-", stdin=lines(*({"id": "same", "text": text} for text in texts), good(0)))
    assert_whole(snapshot(gistream), {"same": {"text": texts[-1]}})
    assert snapshot(gistream).manifest.counts.passages == 2
    assert gistream.ok("verify", "notes", "--json").json["equal"]


def test_a_document_that_breaks_a_step_stops_nobody_else(gistream: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    extract = RulesExtractor.extract

    def brittle(self: RulesExtractor, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        if any("poison" in text for _, text in passages):
            raise ZeroDivisionError("cannot read poison")
        return extract(self, passages)

    monkeypatch.setattr(RulesExtractor, "extract", brittle)
    ended = gistream("ingest", "notes", "-", "--json", stdin=between([b'{"id": "bad", "text": "poison"}'] * 2))
    assert ended.code == Exit.REFUSED
    assert (ended.json["rejected"], ended.json["indexed"]) == (2, 3)
    assert_good(gistream, 3)
    letters = gistream.ok("dead-letters", "list", "--json").json["letters"]
    assert [(letter["id"], letter["step"], letter["reason"]) for letter in letters] == [
        ("bad", "apply", "ZeroDivisionError: cannot read poison")
    ] * 2

    # Once the cause is gone, what had failed can be sent again as it was.
    monkeypatch.undo()
    monkeypatch.setenv("GISTREAM_EMBEDDING_DIMENSIONS", "32")
    gistream.ok("dead-letters", "replay", "1", "--data", str(gistream.data))
    assert gistream.ok("status", "--data", str(gistream.data), "--json").json["namespaces"]["notes"]["documents"] == 4


@pytest.mark.slow
def test_a_document_of_ten_megabytes_is_indexed_whole(gistream: Terminal) -> None:
    chosen = random.Random(20_311)
    words = ["".join(chosen.choices("abcdefghijklmnopqrstuvwxyz", k=chosen.randint(2, 9))) for _ in range(500)]
    text = " ".join(" ".join(chosen.choices(words, k=12)) + "." for _ in range(140_000))
    assert len(text) > 10 * 10**6
    gistream.ok("ingest", "notes", "-", stdin=lines(good(0), {"id": "enormous", "text": text}, good(1)))
    assert_whole(snapshot(gistream), {"enormous": {"text": text}})
    assert_good(gistream, 2)
