"""`gistream feed`: adding, listing, running and removing, on real folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.exits import Exit
from index.home import Home
from query.status import sizes
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
    ],
)
def test_what_cannot_be_added(
    gistream: Terminal, folder: Path, arguments: tuple[str, ...], code: Exit, said: str
) -> None:
    ended = gistream("feed", "add", *arguments)
    assert (ended.code, "Traceback" in ended.err) == (code, False), ended
    assert said in ended.err
    assert gistream.ok("feed", "list", "--json").json == {"feeds": {}}


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
