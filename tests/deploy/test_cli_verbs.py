"""The verbs, each on a real data folder: log, runner, tables and all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from deploy.exits import Exit
from index.home import Home

from .terminal import Terminal, lines

ANN = {"id": "people/ann", "title": "Ann", "text": "Ann Lee repaired the Swallow. Her sister Bea Lee owns the Swallow."}
BEA = {"id": "people/bea", "text": "Bea Lee lives in Port Alba.", "event_time": "1969-07-20T20:17:00Z"}


def test_a_document_comes_is_found_and_goes(gistream: Terminal) -> None:
    came = gistream.ok("ingest", "notes", "-", "--json", stdin=lines(ANN, BEA)).json
    assert came | {"seconds": 0, "token": ""} == {
        "namespace": "notes", "events": 2, "rejected": 0, "indexed": 2, "seconds": 0, "token": "", "skipped": {}
    }  # fmt: skip
    found = gistream.ok("search", "notes", "Who repaired the Swallow?", "-k", "1", "--json").json
    assert [passage["document"] for passage in found["passages"]] == ["people/ann"]
    assert found["mode"] == "fused"
    assert found["staleness_seconds"] == 0

    gone = gistream.ok("delete", "notes", "people/ann", "--json").json
    assert gone["deleted"] == 1
    found = gistream.ok("search", "notes", "Who repaired the Swallow?", "--mode", "bm25", "--json").json
    assert found["snapshot"] >= gone["snapshot"]
    assert found["passages"] == []


def test_status_of_nothing_makes_nothing(gistream: Terminal) -> None:
    assert gistream.ok("status", "--json").json == {"namespaces": {}, "dead_letters": 0, "feeds": {}}
    assert "no namespace yet" in gistream.ok("status").out
    assert not gistream.data.exists()


def test_status_and_snapshots_tell_what_is_there(gistream: Terminal) -> None:
    gistream("ingest", "notes", "-", stdin=lines(ANN, BEA) + "what?\n")
    told = gistream.ok("status", "--json").json
    assert told["dead_letters"] == 1
    counts = told["namespaces"]["notes"]
    assert set(counts) == {"documents", "passages", "entities", "facts", "snapshot"}
    assert (counts["documents"], counts["passages"]) == (2, 2)
    kept = gistream.ok("snapshots", "notes", "--json").json["snapshots"]
    assert [entry["snapshot"] for entry in kept] == list(range(counts["snapshot"], 0, -1))
    assert (kept[0]["documents"], kept[-1]["documents"]) == (2, 0)
    newest = gistream.ok("snapshots", "notes", "--limit", "1").out.splitlines()
    assert [line.split()[0] for line in newest] == ["snapshot", str(counts["snapshot"])]
    people = gistream.ok("status").out
    assert "notes" in people and "1 dead letters wait" in people


def test_a_question_about_the_past(gistream: Terminal) -> None:
    gistream.ok("ingest", "notes", "-", stdin=lines(ANN))
    before = gistream.ok("snapshots", "notes", "--json").json["snapshots"][0]
    gistream.ok("ingest", "notes", "-", stdin=lines({**ANN, "text": "Cy Dow sank the Swallow."}))
    for when in (str(before["snapshot"]), before["time"]):
        found = gistream.ok("search", "notes", "Who repaired the Swallow?", "--as-of", when, "--json").json
        assert found["passages"][0]["text"].startswith("Ann Lee repaired")
        assert (found["snapshot"], found["staleness_seconds"]) == (before["snapshot"], None)
    ended = gistream("search", "notes", "Swallow", "--as-of", "99")
    assert (ended.code, "there is no snapshot 99" in ended.err) == (Exit.NOT_FOUND, True)

    newest = str(gistream.ok("status", "--json").json["namespaces"]["notes"]["snapshot"])
    told = gistream.ok("snapshots", "diff", str(before["snapshot"]), newest).out
    assert "documents: 0 came, 0 went, 1 changed\n  ~ people/ann  Ann\n" in told
    assert "  + people/ann  Cy Dow sank the Swallow.\n" in told and "  + Cy Dow\n" in told and "  - Bea Lee\n" in told
    few = gistream.ok("snapshots", "diff", newest, str(before["snapshot"]), "notes", "--limit", "1").out
    assert " more\n" in few
    diff = gistream.ok("snapshots", "diff", str(before["snapshot"]), newest, "--json").json
    assert (diff["namespace"], diff["passages"]["came"], diff["passages"]["went"]) == ("notes", 1, 1)


def test_a_question_about_some_of_the_documents(gistream: Terminal) -> None:
    log = {"id": "log", "text": "Bea Lee sold the Swallow.", "metadata": {"year": 1931, "by": ["Ann", "Cy"]}}
    gistream.ok("ingest", "notes", "-", stdin=lines(ANN, BEA, log))

    def ask(*options: str) -> set[str]:
        found = gistream.ok("search", "notes", "Bea Lee", *options, "--json").json
        return {passage["document"] for passage in found["passages"]}

    assert ask() == {"people/ann", "people/bea", "log"}
    assert ask("--until", "1969-07-21") == ask("--since", "1969-07-20") == {"people/bea"}
    assert ask("--where", "year=1931") == ask("--where", "by=Cy", "--where", "by=Bo") == ask("--where", "by") == {"log"}
    assert ask("--where", "year>=1931", "--where", "year<1932") == {"log"}
    assert ask("--where", "year>1931") == set()
    ended = gistream("search", "notes", "Bea", "--where", "year>1", "--where", "year>2")
    assert (ended.code, "two bounds" in ended.err) == (Exit.USAGE, True)


def test_an_answer_may_not_be_staler_than_allowed(gistream: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTREAM_WAIT_TIMEOUT", "0.05")
    gistream.ok("ingest", "notes", "-", stdin=lines(ANN))
    gistream.ok("search", "notes", "Swallow", "--max-staleness", "0")
    gistream.ok("ingest", "notes", "-", "--no-wait", stdin=lines(BEA))
    gistream.ok("search", "notes", "Swallow", "--max-staleness", "1000")
    ended = gistream("search", "notes", "Swallow", "--max-staleness", "0")
    assert (ended.code, "lacks an event" in ended.err) == (Exit.NOT_YET, True)


def test_a_line_may_name_another_namespace(gistream: Terminal) -> None:
    gistream.ok("ingest", "notes", "-", stdin=lines(ANN, {**BEA, "namespace": "others"}))
    told = gistream.ok("status", "--json").json["namespaces"]
    assert {name: counts["documents"] for name, counts in told.items()} == {"notes": 1, "others": 1}


def test_a_folder_is_ingested_by_path(gistream: Terminal, tmp_path: Path) -> None:
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "one.md").write_text("# Boats\n\nAnn Lee repaired the Swallow.")
    (tmp_path / "notes" / "deep" / "two.txt").write_text("Bea Lee lives in Port Alba.")
    (tmp_path / "notes" / "bad.txt").write_bytes(b"\xff\xfe")
    ended = gistream("ingest", "notes", str(tmp_path / "notes"), "--json")
    assert ended.code == Exit.REFUSED
    assert (ended.json["events"], ended.json["rejected"], ended.json["indexed"]) == (3, 1, 2)
    found = gistream.ok("search", "notes", "swallow", "--mode", "bm25", "--json").json
    assert [(passage["document"], passage["title"]) for passage in found["passages"]] == [("one.md", "Boats")]
    [letter] = gistream.ok("dead-letters", "list", "--json").json["letters"]
    assert "bad.txt" in letter["source"] and "UTF-8" in letter["reason"]


@pytest.mark.parametrize("mode", ["fused", "cogito", "dense", "bm25", "hybrid"])
def test_an_explanation_names_what_led_there(mode: str, gistream: Terminal) -> None:
    gistream.ok("ingest", "notes", "-", stdin=lines(ANN, BEA))
    asked = ("search", "notes", "Who repaired the Swallow?", "--mode", mode, "--explain")
    out = gistream.ok(*asked).out
    assert "1. " in out and "people/ann" in out
    assert f"mode {mode}, snapshot" in out
    word = {"fused": "parts: ", "cogito": "seeds: ", "dense": "cosine: ", "bm25": "words: ", "hybrid": "ranks: "}[mode]
    assert word in out
    assert word not in gistream.ok(*asked[:-1]).out
    assert all(passage["why"] for passage in gistream.ok(*asked, "--json").json["passages"])


def test_a_document_does_not_steer_the_terminal(gistream: Terminal) -> None:
    nasty = {"id": "a\x1b[2J", "title": "[bold]\x07", "text": "Swallow \x1b]0;owned\x07 \x9b31m [red]boat[/red]"}
    gistream.ok("ingest", "notes", "-", stdin=lines(nasty))
    out = gistream.ok("search", "notes", "swallow boat", "--mode", "bm25").out
    assert "[red]boat[/red]" in out
    assert not {"\x1b", "\x07", "\x9b"} & set(out)


def test_search_waits_for_a_write_and_says_when_it_does_not_come(
    gistream: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GISTREAM_WAIT_TIMEOUT", "0.05")
    gistream.ok("ingest", "notes", "-", stdin=lines(ANN))
    gistream.ok("search", "notes", "Swallow", "--wait-for", "log:1")
    ended = gistream("search", "notes", "Swallow", "--wait-for", "log:2")
    assert (ended.code, "event 2 is not visible" in ended.err) == (Exit.NOT_YET, True)


def test_without_waiting_the_next_process_indexes(gistream: Terminal) -> None:
    assert gistream.ok("ingest", "notes", "-", "--no-wait", "--json", stdin=lines(ANN)).json["indexed"] is None
    assert gistream.ok("status", "--json").json["namespaces"] == {}
    gistream.ok("ingest", "notes", "-", stdin=lines(BEA))
    assert gistream.ok("status", "--json").json["namespaces"]["notes"]["documents"] == 2


def test_a_letter_is_listed_shown_repaired_and_replayed(gistream: Terminal, tmp_path: Path) -> None:
    broken = '{"id": "people/ann", "text": 7, "note": "caf\u00e9"}'
    ended = gistream("ingest", "notes", "-", stdin=f"{lines(BEA)}{broken}\n")
    assert ended.code == Exit.REFUSED and "dead-letters list" in ended.err

    listed = gistream.ok("dead-letters", "list", "--json").json
    assert listed["dead_letters"] == 1
    [letter] = listed["letters"]
    assert (letter["source"], letter["namespace"], letter["step"]) == ("standard input, line 2", "notes", "decode")
    assert "people/ann" in gistream.ok("dead-letters", "list").out
    shown = gistream.ok("dead-letters", "show", "1", "--json").json
    assert shown == letter | {"payload": broken}
    assert gistream.ok("dead-letters", "show", "1", "--payload").out == broken
    assert broken in gistream.ok("dead-letters", "show", "1").out

    again = gistream("dead-letters", "replay", "1")
    assert again.code == Exit.REFUSED and "people/ann" in again.err
    assert gistream.ok("status", "--json").json["dead_letters"] == 1

    (tmp_path / "repaired.json").write_text(json.dumps(ANN))
    sent = gistream.ok("dead-letters", "replay", "1", "--with", str(tmp_path / "repaired.json"), "--json").json
    assert (sent["namespace"], sent["id"]) == ("notes", "people/ann")
    told = gistream.ok("status", "--json").json
    assert (told["dead_letters"], told["namespaces"]["notes"]["documents"]) == (0, 2)
    assert gistream.ok("dead-letters", "list").out == "no dead letter waits\n"
    assert gistream("dead-letters", "replay", "1", "--with", "-", stdin=json.dumps(ANN)).code == Exit.NOT_FOUND
    assert gistream.ok("dead-letters", "show", "1", "--json").json["replayed"] == sent["token"]


def test_letters_that_nobody_needs_are_dropped(gistream: Terminal) -> None:
    gistream("ingest", "notes", "-", stdin="1\n2\n3\n")
    assert gistream.ok("dead-letters", "drop", "3", "1", "3", "--json").json == {"dropped": 2, "dead_letters": 1}
    assert [letter["number"] for letter in gistream.ok("dead-letters", "list", "--json").json["letters"]] == [2]
    gone = gistream("dead-letters", "drop", "2", "3")
    assert gone.code == Exit.NOT_FOUND and "no dead letter 3" in gone.err
    assert gistream.ok("status", "--json").json["dead_letters"] == 0


def test_the_list_of_letters_goes_on_where_it_stopped(gistream: Terminal) -> None:
    gistream("ingest", "notes", "-", stdin="1\n2\n3\n")
    first = gistream.ok("dead-letters", "list", "--limit", "2")
    assert first.out.endswith("2 of 3\n")
    rest = gistream.ok("dead-letters", "list", "--after", "2", "--json").json
    assert [letter["number"] for letter in rest["letters"]] == [3]


def test_verify_is_equal_after_edits_and_says_what_differs_after_damage(
    gistream: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    gistream.ok("ingest", "notes", "-", stdin=lines(ANN, BEA, {**ANN, "text": "Ann Lee sold the Swallow to Cy Dow."}))
    gistream.ok("delete", "notes", "people/bea")
    assert gistream.ok("verify", "notes", "--json").json["equal"]
    assert "equals a clean rebuild" in gistream.ok("verify", "notes").out

    # A rebuild that replays nothing: everything in the index is a difference.
    monkeypatch.setattr("streams.rebuild.replay", lambda *arguments: None)
    ended = gistream("verify", "notes", "--limit", "3", "--json")
    assert ended.code == Exit.REFUSED
    assert not ended.json["equal"]
    assert ended.json["differences"] > len(ended.json["shown"]) == 3
    people = gistream("verify", "notes", "--limit", "1")
    assert people.code == Exit.REFUSED and people.out.startswith("- ") and "differs from a clean rebuild" in people.out


def test_rebuild_brings_an_index_to_the_settings_of_now(gistream: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    gistream.ok("ingest", "notes", "-", stdin=lines(ANN, BEA))
    before = gistream.ok("status", "--json").json["namespaces"]["notes"]
    monkeypatch.setenv("GISTREAM_EMBEDDING_DIMENSIONS", "48")
    refused = gistream("ingest", "notes", "-", stdin=lines(ANN))
    assert refused.code == Exit.DAMAGED and "gistream rebuild" in refused.err
    after = gistream.ok("rebuild", "notes", "--json").json
    assert (after["documents"], after["facts"]) == (before["documents"], before["facts"])
    # What was refused before is still in the log, and is indexed now.
    gistream.ok("ingest", "notes", "-", stdin=lines({**BEA, "text": "Bea Lee moved."}))
    assert gistream.ok("verify", "notes", "--json").json["equal"]


def test_eval_scores_a_question_set(gistream: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is measured is indexed here, whatever carries the events of the installation.
    monkeypatch.setenv("GISTREAM_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    kit = tmp_path / "tiny"
    kit.mkdir()
    passages = [
        {"id": "p1", **{name: ANN[name] for name in ("title", "text")}},
        {"id": "p2", "title": "", "text": BEA["text"]},
    ]
    questions = [{"id": "q1", "question": "Who repaired the Swallow?", "gold": ["p1"]}]
    for name, rows in (("passages", passages), ("questions", questions)):
        (kit / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines(*rows).encode()))
    asked = (
        "eval",
        "--kit",
        str(kit),
        "--embedder",
        "hashing",
        "--mode",
        "bm25",
        "--mode",
        "cogito",
        "--profile",
        "paper",
    )
    ranks = tmp_path / "ranks.jsonl"
    report = gistream.ok(*asked, "--ranks", str(ranks), "--data", str(tmp_path / "kept"), "--json").json
    assert {name: figures["recall@2"] for name, figures in report["modes"].items()} == {"bm25": 100.0, "cogito": 100.0}
    written = [json.loads(line) for line in ranks.read_text().splitlines()]
    assert [(ranking["qid"], ranking["mode"], ranking["top"][0]) for ranking in written] == [
        ("q1", "bm25", "p1"),
        ("q1", "cogito", "p1"),
    ]
    again = gistream.ok(*asked, "--data", str(tmp_path / "kept"))
    assert "recall@2" in again.out
    assert Home(tmp_path / "kept").names() == ["tiny"]


@pytest.mark.parametrize(("differences", "code"), [(0, Exit.OK), (3, Exit.REFUSED)])
def test_the_demo_fails_where_its_index_differs_from_a_rebuild(
    differences: int, code: Exit, gistream: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.demo.run.run", lambda: differences)
    assert gistream("demo").code == code
