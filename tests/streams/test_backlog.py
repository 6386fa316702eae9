"""Tests of the local log as a backlog: news once, in order, and forgotten when it is durable."""

from __future__ import annotations

from streams.backlog import LogBacklog
from streams.position import NOTHING

from .running import Running


def test_news_is_told_once(running: Running) -> None:
    backlog = LogBacklog(running.log, running.home)
    running.send("a", "b")
    running.send("x", namespace="bob")
    assert backlog.news() == {"ada": 2, "bob": 3}
    assert backlog.news() == {}
    running.send("c")
    assert backlog.news() == {"ada": 4}


def test_events_come_in_order_and_everything_is_its_own(running: Running) -> None:
    backlog = LogBacklog(running.log, running.home)
    running.send(*"abc")
    assert [one.event.id for one in backlog.read("ada", 1, 10, 1 << 20)] == ["b", "c"]
    assert [one.event.id for one in backlog.read("ada", NOTHING, 1, 1)] == ["a"]
    assert backlog.owns("ada") and backlog.source("ada") == "log"
    [first] = backlog.read("ada", 0, 1, 1)
    assert first.stamp <= backlog.clock()


def test_the_log_forgets_what_is_durable_and_not_what_is_only_reached(running: Running) -> None:
    backlog = LogBacklog(running.log, running.home)
    running.send(*"abc")
    backlog.reached("ada", 2)
    assert running.waiting() == ["a", "b", "c"]
    backlog.durable({"ada": 2})
    assert running.waiting() == ["c"]


def test_how_far_a_namespace_is_stands_in_its_files(running: Running) -> None:
    backlog = LogBacklog(running.log, running.home)
    assert backlog.position("ada") == NOTHING
    running.send("a")
    with running.runner() as runner:
        runner.drain()
    assert backlog.position("ada") == 1
    for path in (running.home.incarnation("ada") / "manifests").glob("*.json"):
        path.write_bytes(b"{")
    assert backlog.position("ada") == NOTHING, "opening it tells"
