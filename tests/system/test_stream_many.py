"""One worker with more namespaces than it holds open, fed at random while one of them is busy: nothing grows with time.

The figures of the full length go to build/soak/; `python -m tests.bench.many` prints the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.many import measure
from tests.broker.cluster import Cluster

MEMORY_MB = 40
"""By which a process of the worker may grow once it has met every namespace."""
FILES = 40
"""More than at the beginning: two for each namespace that is being changed, and what a fetch needs."""


def check(report: dict[str, Any]) -> None:
    """What holds on any machine, however busy. That every document became visible was seen on the way."""
    assert report["restarts"] == 0
    steady, hot = report["steady"], report["hot"]
    assert steady["evicted"] > 0 and steady["commits"] > 0
    assert set(steady["memory"]) == {"understand", "apply"}
    for role, held in steady["memory"].items():
        assert held["growth_mb"] < MEMORY_MB, f"{role}: {held}"
        assert held["files_most"] <= held["files_first"] + FILES, f"{role}: {held}"
    # A busy namespace takes turns with the others: none of these waits until it is through.
    assert hot["cold_send_to_visible_ms"]["p50"] < 1000 * max(5.0, hot["seconds"])


@pytest.mark.slow
def test_a_worker_has_more_namespaces_than_it_holds_open(kafka: Cluster, kafka_prefix: str, tmp_path: Path) -> None:
    report = measure(
        kafka,
        tmp_path,
        kafka_prefix,
        namespaces=60,
        minutes=1 / 3,
        per_second=4,
        backlog=1_500,
        open_namespaces=16,
    )
    check(report)


@pytest.mark.soak
def test_a_worker_has_a_thousand_namespaces(
    kafka: Cluster, kafka_prefix: str, tmp_path: Path, soak_report: Callable[[dict[str, Any]], None]
) -> None:
    report = measure(kafka, tmp_path, kafka_prefix, namespaces=1_000, minutes=10, per_second=3, backlog=5_000)
    soak_report(report)
    check(report)
    assert report["steady"]["commit_p50_ms"] <= 60
