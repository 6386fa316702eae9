"""The service about time: what was, what is true when, how stale an answer may be, and what changed in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import query.retrieve
from index import maintenance
from index.maintenance import Retention
from query.modes.base import ranked
from query.retrieve import MODES
from streams.rebuild import rebuild
from tests.query.served import Served, serving

from .test_service_problems import problem

NOTHING = Retention(reach=timedelta(0), every=timedelta(0))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Snapshot 1 is empty; 2 has a keeper of the lamp, 3 another one, 4 nobody and a boat."""
    with serving(tmp_path) as served:
        served.put("lamp", "Ida keeps the Lamp.", event_time="1931-04-01T00:00:00Z", metadata={"page": 1})
        served.settle()
        served.put("lamp", "Jon keeps the Lamp.", event_time="1950-04-01", metadata={"page": 2, "by": ["Ada", "Bo"]})
        served.settle()
        served.client.delete("/v1/namespaces/ns/documents/lamp")
        served.put("boat", "Jon built the Sula.", title="Boat")
        served.settle()
        yield served


def snapshots(served: Served) -> dict[int, datetime]:
    listed = served.client.get("/v1/namespaces/ns/snapshots").json()["snapshots"]
    return {entry["snapshot"]: datetime.fromisoformat(entry["time"]) for entry in listed}


def refused(served: Served, status: int, kind: str, **fields: Any) -> dict[str, Any]:
    answer = served.client.post("/v1/namespaces/ns/retrieve", json={"question": "Who keeps the Lamp?", **fields})
    return problem(answer, status, kind)


def clean(served: Served) -> None:
    for writer in served.runner.writers():
        maintenance.clean(writer, NOTHING)


@pytest.mark.parametrize("mode", MODES)
def test_a_question_is_answered_as_of_a_snapshot_or_a_moment(served: Served, mode: str) -> None:
    texts: dict[int, list[str]] = {1: [], 2: ["Ida keeps the Lamp."], 3: ["Jon keeps the Lamp."]}
    times = snapshots(served)
    for number, expected in texts.items():
        for when in (number, str(number), times[number].isoformat(), times[number].replace(tzinfo=None).isoformat()):
            answer = served.retrieve("Who keeps the Lamp?", mode=mode, as_of=when, explain=True)
            assert [passage["text"] for passage in answer["passages"]] == expected
            assert (answer["snapshot"], answer["staleness_seconds"]) == (number, None)
    assert [p["document"] for p in served.retrieve("Who built the Sula?", mode=mode)["passages"]] == ["boat"]


def test_a_document_is_read_as_of_a_snapshot(served: Served) -> None:
    def get(when: object) -> Any:
        return served.client.get("/v1/namespaces/ns/documents/lamp", params={"as_of": str(when)})

    assert [get(number).json()["text"] for number in (2, 3)] == ["Ida keeps the Lamp.", "Jon keeps the Lamp."]
    assert "is not in" in problem(get(1), 404, "not-found")["detail"]
    assert "was deleted from" in problem(get(4), 404, "not-found")["detail"]
    problem(get(5), 404, "not-found")
    problem(get("yesterday"), 400, "bad-request")


def test_what_never_was_is_not_found(served: Served) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert "no snapshot 5" in refused(served, 404, "not-found", as_of=5)["detail"]
    assert "still to come" in refused(served, 404, "not-found", as_of=tomorrow)["detail"]
    assert "there was no snapshot" in refused(served, 404, "not-found", as_of="1931-01-01")["detail"]
    refused(served, 404, "not-found", as_of=-1)
    nonsense: object
    for nonsense in ("yesterday", True, 2**63, 1.5, [], "log:1"):
        assert "as_of" in str(refused(served, 422, "invalid-fields", as_of=nonsense)["errors"])


def test_what_was_cleaned_away_is_gone_also_where_it_is_held(served: Served) -> None:
    first = snapshots(served)[2].isoformat()
    assert served.retrieve("Lamp", as_of=2)["passages"]
    clean(served)
    for when in (2, first):
        document = refused(served, 410, "snapshot-gone", as_of=when)
        assert "beyond the retention" in document["detail"] and "4" in document["hint"]
    assert served.retrieve("Sula", as_of=4)["snapshot"] == 4
    assert 'gistream_as_of_total{outcome="gone"} 2.0' in served.client.get("/metrics").text


def test_what_was_before_a_rebuild_is_gone(served: Served) -> None:
    before = snapshots(served)[3].isoformat()
    served.runner.close()
    rebuild(served.readers.home, "ns", served.pipeline)
    newest = served.readers.refresh("ns").manifest.number
    for when in (before, newest + 100):
        assert "made anew at" in refused(served, 410, "snapshot-gone", as_of=when)["detail"]
    assert served.retrieve("Sula", as_of=newest)["passages"]


def test_a_snapshot_that_goes_while_it_is_read_is_gone(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleaned after it was found and opened, before its rows are read."""

    def cleaning(*arguments: Any) -> Any:
        [writer] = served.runner.writers()
        maintenance.compact(writer)
        clean(served)
        return ranked(*arguments)

    monkeypatch.setattr(query.retrieve, "ranked", cleaning)
    assert "snapshot 2" in refused(served, 410, "snapshot-gone", as_of=2)["detail"]


def test_questions_about_the_past_are_counted(served: Served) -> None:
    for when in (2, 2, 3, 4):
        served.retrieve("Lamp", as_of=when, until="1940-01-01")
    served.retrieve("Lamp")
    metrics = served.client.get("/metrics").text
    assert 'gistream_as_of_total{outcome="opened"} 2.0' in metrics
    assert 'gistream_as_of_total{outcome="held"} 2.0' in metrics
    assert "gistream_older_snapshot_open_seconds_count 2.0" in metrics
    assert "gistream_filter_seconds_count 4.0" in metrics


@pytest.mark.parametrize("mode", MODES)
def test_answers_hold_what_the_filter_admits(served: Served, mode: str) -> None:
    served.put("lamp", "Ida keeps the Lamp.", event_time="1931-04-01T00:00:00Z", metadata={"page": 1})
    served.put("later", "Jon keeps the Lamp.", event_time="1950-04-01", metadata={"page": 2, "by": ["Ada", "Bo"]})
    served.put("timeless", "Nobody keeps the Lamp.")
    served.settle()

    def ask(**fields: Any) -> set[str]:
        return {p["document"] for p in served.retrieve("Who keeps the Lamp?", mode=mode, **fields)["passages"]}

    assert {"lamp", "later", "timeless"} <= ask()
    assert ask(until="1931-04-01") == {"lamp"}
    assert ask(until="1931-03-31T23:59:59.999999") == set()
    assert ask(since="1931-04-02") == {"later"}
    assert ask(where={"page": {"at_least": 1, "below": 2}}) == {"lamp"}
    assert ask(where={"by": {"in": ["Bo", "Cy"]}}) == {"later"}
    assert ask(where={"page": {"exists": False}}) >= {"timeless"}
    assert ask(where={"page": {"equals": "1"}}) == set()
    assert ask(where={"page": {"equals": 1}}, since="1931-04-02") == set()
    assert ask(where={"page": {"equals": 2}}, as_of=2) == set()


def test_a_filter_that_makes_no_sense_names_the_field(served: Served) -> None:
    document = refused(served, 422, "invalid-fields", where={"page": {"like": "x"}}, until="soon")
    assert {error["field"] for error in document["errors"]} == {"until", "where.page.like"}


def test_an_answer_may_not_be_staler_than_allowed(served: Served) -> None:
    assert served.retrieve("Sula", max_staleness=0, wait_seconds=0)["snapshot"] == 4
    served.put("late", "Carla came late.")
    # In this service an event that waits counts as one second each.
    document = refused(served, 503, "too-stale", max_staleness=0.5, wait_seconds=0.05)
    assert re.search(r"snapshot 4 of namespace ns lacks an event that was accepted 1\.0 s ago", document["detail"])
    assert served.retrieve("Sula", max_staleness=2, wait_seconds=0)["snapshot"] == 4
    served.settle()
    assert served.retrieve("Carla", max_staleness=0, wait_seconds=0)["snapshot"] == 5
    refused(served, 400, "bad-request", max_staleness=1, wait_seconds=31)
    refused(served, 422, "invalid-fields", max_staleness=-1)


def test_the_past_cannot_be_waited_for(served: Served) -> None:
    for waits in ({"wait_for": "log:1"}, {"max_staleness": 1}):
        assert "as_of" in str(refused(served, 422, "invalid-fields", as_of=2, **waits)["errors"])


def test_two_snapshots_are_compared(served: Served) -> None:
    def diff(before: object, after: object, limit: int = 100) -> Any:
        asked = {"before": str(before), "after": str(after), "limit": str(limit)}
        return served.client.get("/v1/namespaces/ns/snapshots/diff", params=asked)

    found = diff(2, 3).json()
    assert (found["before"], found["after"]) == (2, 3)
    counts = {kind: [found[kind][name] for name in ("came", "went", "changed")] for kind in found if kind[-1] == "s"}
    assert counts == {"documents": [0, 0, 1], "passages": [1, 1, 0], "entities": [1, 1, 0], "facts": [1, 1, 0]}
    texts = {(row["before"], row["after"], row["document"]) for row in found["passages"]["rows"]}
    assert texts == {("Ida keeps the Lamp.", None, "lamp"), (None, "Jon keeps the Lamp.", "lamp")}
    assert {(row["before"], row["after"]) for row in found["entities"]["rows"]} == {("Ida", None), (None, "Jon")}
    whole = diff(snapshots(served)[1].isoformat(), 4).json()["documents"]
    assert whole == {
        "came": 1, "went": 0, "changed": 0,
        "rows": [{"id": "boat", "document": None, "before": None, "after": "Boat"}],
    }  # fmt: skip
    few = diff(1, 3, limit=0).json()
    assert few["passages"] == {"came": 1, "went": 0, "changed": 0, "rows": []}
    problem(diff(1, 9), 404, "not-found")
    problem(diff(1, "soon"), 400, "bad-request")
    clean(served)
    problem(diff(2, 4), 410, "snapshot-gone")
