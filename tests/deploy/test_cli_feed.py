"""`gistream feed`: adding, listing, running and removing, on real folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.exits import Exit
from index.home import Home
from query.status import sizes
from tests.broker.cluster import Cluster
from tests.streams.feeds.foreign import foreign_topic
from tests.streams.feeds.sources import rss
from tests.streams.feeds.web import web

from .terminal import Terminal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "My Notes"
    folder.mkdir()
    (folder / "a.txt").write_text("Anna sailed to Falkirk.")
    (folder / "b.html").write_text("<title>The Lock</title><nav>Home</nav><p>Bert repaired the lock.")
    (folder / "c.png").write_bytes(b"\x89PNG")
    return folder


def documents(gistream: Terminal, namespace: str = "notes") -> int:
    held = sizes(Home(gistream.data)).get(namespace)
    return 0 if held is None else held.documents


def test_the_life_of_a_feed(gistream: Terminal, folder: Path) -> None:
    added = gistream.ok("feed", "add", "folder", str(folder), "--namespace", "notes", "--json").json
    assert added == {
        "name": "my-notes",
        "kind": "folder",
        "source": str(folder),
        "namespace": "notes",
        "prefix": "",
    }
    assert gistream.ok("feed", "run", "--once", "--json").json == {
        "feeds": {"my-notes": {"events": 2, "rejected": 0, "error": None}},
        "token": "log:2",
    }
    assert documents(gistream) == 2
    (folder / "a.txt").rename(folder / "z.txt")
    (folder / "b.html").unlink()
    assert gistream.ok("feed", "run", "my-notes", "--once", "--json").json["feeds"]["my-notes"]["events"] == 3
    assert documents(gistream) == 1
    assert gistream.ok("feed", "run", "--once", "--json").json["token"] is None
    listed = gistream.ok("feed", "list", "--json").json["feeds"]["my-notes"]
    assert (listed["events"], listed["documents"], listed["rejected"], listed["error"]) == (5, 1, 0, None)
    assert listed["skipped"] == {".png": 1}
    assert listed["succeeded"]
    assert "my-notes passes over files of other kinds: 1 .png" in gistream.ok("feed", "list").out
    removed = gistream.ok("feed", "remove", "my-notes", "--delete-documents", "--json").json
    assert removed == {"name": "my-notes", "deleted": 1, "token": "log:6"}
    assert gistream.ok("feed", "list", "--json").json == {"feeds": {}}
    gistream.ok("ingest", "other", "-")
    gistream.ok("feed", "run", "--once")
    gistream.ok("verify", "notes")


def test_removed_its_documents_stay_unless_told_otherwise(gistream: Terminal, folder: Path) -> None:
    gistream.ok("feed", "add", "folder", str(folder), "--namespace", "notes")
    gistream.ok("feed", "run", "--once")
    assert gistream.ok("feed", "remove", "my-notes", "--json").json["deleted"] == 0
    assert documents(gistream) == 2
    gistream.ok("feed", "add", "folder", str(folder), "--namespace", "notes", "--name", "again")
    assert gistream.ok("feed", "run", "--once", "--json").json["feeds"]["again"]["events"] == 2
    assert documents(gistream) == 2


def test_a_growing_file_and_a_web_feed(gistream: Terminal, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"id": "a", "text": "Anna."}\nbroken\n')
    gistream.ok("feed", "add", "jsonl", "events.jsonl", "--namespace", "lines")
    with web() as site:
        site.publish("/feed", rss({"a": "One.", "b": "Two."}))
        address = f"{site.url}/feed"
        added = gistream.ok("feed", "add", "rss", address, "--namespace", "web", "--name", "site", "--json").json
        assert (added["prefix"], added["interval"], added["on_disappear"]) == ("site/", 900, "keep")
        ended = gistream("feed", "run", "--once", "--json")
        assert ended.code == Exit.REFUSED, "one line is broken"
        assert ended.json["feeds"]["events"] == {"events": 1, "rejected": 1, "error": None}
        assert (documents(gistream, "lines"), documents(gistream, "web")) == (1, 2)
        site.answer("/feed", 503)
        (tmp_path / "events.jsonl").write_text('{"id": "b", "text": "Bert."}\n')
        ended = gistream("feed", "run", "--once", "--json")
    assert ended.code == Exit.FEED
    assert "status 503" in ended.json["feeds"]["site"]["error"]
    assert ended.json["feeds"]["events"]["events"] == 1, "the others go on"
    assert "feed site: " in gistream.ok("status").out
    assert gistream.ok("status", "--json").json["feeds"]["site"]["failed"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("folder", "nowhere", "--namespace", "n"), Exit.NOT_FOUND, "there is no folder"),
        (("jsonl", "nowhere", "--namespace", "n"), Exit.NOT_FOUND, "there is no file"),
        (("rss", "example.org/feed", "--namespace", "n"), Exit.USAGE, "is no web address"),
        (("rss", "http://[x/feed", "--namespace", "n", "--name", "x"), Exit.USAGE, "is no web address"),
        (("rss", "https://e.org/f", "--namespace", "n", "--interval", "1"), Exit.USAGE, "at least 10 s"),
        (("rss", "https://e.org/f", "--namespace", "n", "--interval", "nan"), Exit.USAGE, "at least 10 s"),
        (("rss", "https://e.org/f", "--namespace", "No Name"), Exit.NOT_FOUND, "is no namespace"),
        (("rss", "https://e.org/f", "--namespace", "n", "--name", "No Name"), Exit.USAGE, "no name of a feed"),
        (("folder", "My Notes", "--namespace", "n", "--interval", "60"), Exit.USAGE, "are for rss"),
        (("jsonl", "x", "--namespace", "n", "--prefix", "x"), Exit.USAGE, "not for jsonl"),
        (("folder", ".", "--namespace", "n"), Exit.USAGE, "the data folder"),
        (("folder", "My Notes"), Exit.USAGE, "--namespace"),
        (("folder", "My Notes", "--namespace", "n", "--text", "body"), Exit.USAGE, "--text is for kafka"),
        (("rss", "https://e.org/f", "--namespace", "n", "--event-time", "at"), Exit.USAGE, "--event-time is for kafka"),
        (("kafka", "t", "--namespace", "n"), Exit.USAGE, "no Kafka is set. name the brokers of the topic with --boot"),
        (("kafka", "t", "--namespace", "n", "--bootstrap", "x"), Exit.USAGE, "'x' is no address of brokers"),
        (("kafka", "a topic", "--namespace", "n", "--bootstrap", "x:1"), Exit.USAGE, "is no name of a topic"),
        (("kafka", "t", "--namespace", "n", "--bootstrap", "x:1", "--id", "a..b"), Exit.USAGE, "'a..b' is no path"),
        (("kafka", "t", "--namespace", "n", "--bootstrap", "x:1", "--deleted", "op"), Exit.USAGE, "write PATH=VALUE"),
    ],
)
def test_what_cannot_be_added(
    gistream: Terminal, folder: Path, arguments: tuple[str, ...], code: Exit, said: str
) -> None:
    ended = gistream("feed", "add", *arguments)
    assert (ended.code, "Traceback" in ended.err) == (code, False), ended
    assert said in ended.err
    assert gistream.ok("feed", "list", "--json").json == {"feeds": {}}


def test_a_foreign_topic(gistream: Terminal, kafka: Cluster, kafka_prefix: str) -> None:
    fields = ("--text", "head.lead", "--text", "body", "--id", "no", "--deleted", "state=gone", "--metadata", "lang")
    with foreign_topic(kafka, f"{kafka_prefix}Articles") as topic:
        added = gistream.ok(
            "feed", "add", "kafka", topic.name, "--namespace", "news", "--bootstrap", kafka.bootstrap, *fields, "--json"
        ).json
        assert added == {
            "name": topic.name.lower(),
            "kind": "kafka",
            "source": topic.name,
            "namespace": "news",
            "prefix": "",
            "bootstrap": kafka.bootstrap,
            "id": "no",
            "text": ["head.lead", "body"],
            "metadata": ["lang"],
            "deleted": ["state", "gone"],
        }
        topic.send(b"x", json.dumps({"no": 1, "head": {"lead": "Anna sailed."}, "body": "Far.", "lang": "en"}).encode())
        topic.send(b"x", json.dumps({"no": 2, "body": "Bert stayed."}).encode())
        topic.send(b"x", json.dumps({"body": "Nobody knows which."}).encode())
        ended = gistream("feed", "run", "--once", "--json")
        assert ended.code == Exit.REFUSED
        assert ended.json["feeds"][added["name"]] == {"events": 2, "rejected": 1, "error": None}
        assert documents(gistream, "news") == 2
        [letter] = gistream.ok("dead-letters", "list", "--json").json["letters"]
        assert letter["source"].startswith(f"{topic.name}, partition ")
        assert "no field 'no'" in letter["reason"]
        topic.send(b"x", json.dumps({"no": 2, "state": "gone"}).encode())
        topic.send(b"1", None)
        assert gistream.ok("feed", "run", "--once", "--json").json["feeds"][added["name"]]["events"] == 2
        assert documents(gistream, "news") == 0
        assert gistream.ok("feed", "run", "--once", "--json").json["token"] is None
    gistream.ok("feed", "remove", added["name"])


def test_our_own_topics_are_no_feed(gistream: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTREAM_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("GISTREAM_KAFKA_PREFIX", "ours-")
    ended = gistream("feed", "add", "kafka", "ours-documents", "--namespace", "n")
    assert (ended.code, "the topic ours-documents is our own" in ended.err) == (Exit.USAGE, True)
    gistream.ok("feed", "add", "kafka", "documents", "--namespace", "n")


def test_two_feeds_do_not_write_the_same_documents(gistream: Terminal, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    gistream.ok("feed", "add", "folder", str(folder), "--namespace", "notes")
    for arguments, said in (
        (("--name", "my-notes", "--prefix", "x/"), "there is a feed my-notes already"),
        ((), "a --prefix of its own"),
    ):
        ended = gistream("feed", "add", "folder", "other", "--namespace", "notes", *arguments)
        assert ended.code == Exit.USAGE
        assert said in ended.err
    gistream.ok("feed", "add", "folder", "other", "--namespace", "notes", "--prefix", "other/")


def test_there_is_no_such_feed(gistream: Terminal) -> None:
    for arguments in (("remove", "x"), ("run", "x"), ("run", "x", "--once")):
        ended = gistream("feed", *arguments)
        assert (ended.code, "there is no feed x" in ended.err) == (Exit.NOT_FOUND, True)


def test_ingest_counts_what_it_passes_over(gistream: Terminal, folder: Path) -> None:
    assert gistream.ok("ingest", "notes", str(folder), "--json").json["skipped"] == {".png": 1}
    assert "skipped    1 .png" in gistream.ok("ingest", "notes", str(folder)).out
