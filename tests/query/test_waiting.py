"""Waiting for freshness: bounded in time, and never for what comes meanwhile."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from index.errors import BadRequest, NotFound, TooStale
from index.types import DocumentEvent
from query.waiting import until_fresh
from tests.query.served import Served, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        served.log.append([DocumentEvent(namespace="ns", id="a", text="Anna.")])
        served.settle()
        yield served


def test_what_comes_while_it_waits_is_not_waited_for(served: Served) -> None:
    """Under a steady stream something is always missing; what was there at first becomes visible nevertheless."""
    started = time.monotonic()
    looks = []

    def staleness(name: str, positions: Mapping[str, int]) -> float:
        looks.append(name)
        age = time.monotonic() - started
        # Until the fifth look an event of one second before the question is missing, then only one that came after it.
        return age + 1 if len(looks) < 5 else age * 0.9

    asyncio.run(until_fresh(served.readers, staleness, "ns", 0, 60))
    assert looks == ["ns"] * 5


def test_a_stopped_runner_is_told_after_the_time_allowed(served: Served) -> None:
    started = time.monotonic()
    with pytest.raises(TooStale, match=r"accepted 7\.0 s ago, and 3 s are allowed") as caught:
        asyncio.run(until_fresh(served.readers, lambda *_: 7 + time.monotonic() - started, "ns", 3, 0.02))
    assert caught.value.recoverable


def test_a_namespace_that_the_write_will_make_is_waited_for(served: Served) -> None:
    with pytest.raises(TooStale, match="there is no namespace nowhere"):
        asyncio.run(until_fresh(served.readers, lambda *_: 0.5, "nowhere", 1, 0))
    with pytest.raises(NotFound, match="there is no namespace nowhere"):
        asyncio.run(until_fresh(served.readers, lambda *_: 0.0, "nowhere", 1, 60))
    with pytest.raises(NotFound, match="there is no namespace nowhere"):
        # An upper bound is never 0; once it is less than the time since the question, nothing came before that.
        asyncio.run(until_fresh(served.readers, lambda *_: 0.05, "nowhere", 1, 60))


def test_what_is_not_known_yet_is_waited_for(served: Served) -> None:
    with pytest.raises(TooStale, match=r"not known yet what snapshot \d+ of namespace ns lacks, and 3 s are allowed"):
        asyncio.run(until_fresh(served.readers, lambda *_: math.inf, "ns", 3, 0.02))


def test_without_a_log_nobody_knows(served: Served) -> None:
    with pytest.raises(BadRequest, match="nobody here knows how stale"):
        asyncio.run(until_fresh(served.readers, lambda *_: None, "ns", 1, 0))
