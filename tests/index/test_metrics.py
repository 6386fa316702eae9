"""Metrics: every name is registered, documented, and says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from index.metrics import METRICS, CounterName, GaugeName, HistogramName, Metrics

ROOT = Path(__file__).resolve().parents[2]
NAMES = [name for kind in (CounterName, GaugeName, HistogramName) for name in get_args(kind)]


def samples(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Value by (name, labels as `a=b,c=d`)."""
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_name_is_defined_once() -> None:
    assert sorted(NAMES) == sorted(METRICS)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_is_registered_under_its_name_and_documented(name: str) -> None:
    metric = {str(known): metric for known, metric in METRICS.items()}[name]
    families = {family.name: family for family in text_string_to_metric_families(Metrics().render().decode())}
    family = families[name.removesuffix("_total")]
    kind = "counter" if name in get_args(CounterName) else "gauge" if name in get_args(GaugeName) else "histogram"
    assert family.type == kind
    assert family.documentation == metric.meaning
    assert metric.meaning.endswith(".")
    assert metric.remedy.endswith(".")
    assert name.removesuffix("_total").endswith("_seconds") == metric.unit.startswith("seconds")
    assert "namespace" not in metric.labels


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_has_its_place_in_the_code(name: str) -> None:
    texts = (
        path.read_text()
        for component in ("index", "streams", "query", "deploy")
        for path in (ROOT / component).rglob("*.py")
    )
    assert sum(f'"{name}"' in text for text in texts) > 1, "beside its definition, nothing sets it"


def test_what_is_counted_is_rendered() -> None:
    metrics = Metrics()
    metrics.count("gistream_commits_total")
    metrics.count("gistream_commits_total", 2)
    metrics.count("gistream_queries_total", mode="fused", outcome="ok")
    metrics.observe("gistream_batch_documents", 100)
    seen = samples(metrics)
    assert seen["gistream_commits_total", ""] == 3
    assert seen["gistream_queries_total", "mode=fused,outcome=ok"] == 1
    assert seen["gistream_batch_documents_bucket", "le=64.0"] == 0
    assert seen["gistream_batch_documents_bucket", "le=128.0"] == 1


def test_a_watched_gauge_is_read_when_asked() -> None:
    metrics = Metrics()
    lag = [7.0]
    metrics.watch("gistream_lag_events", lambda: lag[0])
    metrics.watch("gistream_namespaces_open", lambda: 4, role="reader")
    assert samples(metrics)["gistream_lag_events", ""] == 7
    assert samples(metrics)["gistream_namespaces_open", "role=reader"] == 4
    lag[0] = 8
    assert samples(metrics)["gistream_lag_events", ""] == 8


def test_a_block_that_raises_is_timed_too() -> None:
    metrics = Metrics()
    with pytest.raises(KeyError), metrics.timed("gistream_query_seconds", mode="fused"):
        raise KeyError
    assert samples(metrics)["gistream_query_seconds_count", "mode=fused"] == 1


def test_wrong_labels_are_refused() -> None:
    metrics = Metrics()
    with pytest.raises(ValueError, match="label"):
        metrics.count("gistream_queries_total", namespace="news")
    with pytest.raises(ValueError, match="label"):
        metrics.count("gistream_queries_total")


def test_two_processes_worth_of_metrics_do_not_mix() -> None:
    first, second = Metrics(), Metrics()
    first.count("gistream_commits_total")
    assert samples(second)["gistream_commits_total", ""] == 0
