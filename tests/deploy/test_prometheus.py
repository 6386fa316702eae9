"""A real Prometheus scrapes a real server: every metric arrives with its type and meaning, and moves with the work."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from index.metrics import METRICS, CounterName, GaugeName

from ..support import wait_until, without_tool
from .running import process

SCRAPES_SECONDS = 0.2


class Prometheus:
    """The HTTP interface of a running Prometheus."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=10)

    def ready(self) -> bool:
        try:
            return self._client.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def metadata(self) -> dict[str, dict[str, str]]:
        """Type and help of every family that was scraped, by name."""
        return {name: told[0] for name, told in self._data("/api/v1/metadata").items()}

    def values(self, query: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of every series that a PromQL query gives now."""
        found = self._data("/api/v1/query", query=query)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def value(self, query: str) -> float | None:
        """The value of the only series that a query gives; None where there is none yet."""
        found = self.values(query)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def close(self) -> None:
        self._client.close()

    def _data(self, path: str, **asked: str) -> Any:
        answer = self._client.get(path, params=asked).json()
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def scraping(target: str, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes `target` (host:port) and nothing else, on this machine alone."""
    binary = shutil.which("prometheus")
    if binary is None:
        without_tool("Prometheus")
    folder.mkdir()
    seconds = f"{round(SCRAPES_SECONDS * 1000)}ms"
    config = {
        "global": {"scrape_interval": seconds, "scrape_timeout": seconds},
        "scrape_configs": [{"job_name": "gistream", "static_configs": [{"targets": [target]}]}],
    }
    # JSON is YAML.
    (folder / "prometheus.yml").write_text(json.dumps(config))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    arguments = [
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with open(folder / "log", "wb") as log:
        running = subprocess.Popen([binary, *arguments], stdout=log, stderr=log, cwd=folder)
    prometheus = Prometheus(f"http://{address}")
    try:
        wait_until(prometheus.ready, timeout=30, what=f"a Prometheus that is ready ({folder / 'log'})")
        yield prometheus
    finally:
        prometheus.close()
        running.kill()
        running.wait()


def kind(name: str) -> str:
    return "counter" if name in get_args(CounterName) else "gauge" if name in get_args(GaugeName) else "histogram"


@pytest.mark.slow
def test_a_real_prometheus_sees_every_metric_and_sees_it_move(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with (
        process(data, embedding_dimensions=32) as (_, url),
        scraping(url.removeprefix("http://"), tmp_path / "prometheus") as prometheus,
        httpx.Client(base_url=f"{url}/v1/namespaces/ns", timeout=30) as client,
    ):
        wait_until(lambda: prometheus.value('up{job="gistream"}') == 1, timeout=30, what="a target that is up")
        wait_until(lambda: METRICS.keys() <= prometheus.metadata().keys(), timeout=10, what="the families")
        families = prometheus.metadata()
        assert {name: (families[name]["type"], families[name]["help"]) for name in METRICS} == {
            name: (kind(name), metric.meaning) for name, metric in METRICS.items()
        }
        assert prometheus.value("gistream_commits_total") == 0

        client.put("/documents/a", json={"text": "Anna Berg repaired the Tern at Dock Nine."})
        client.put("/documents/b", json={"text": "Bert Cole sailed the Tern to Falkirk."})
        token = client.delete("/documents/b").json()["token"]
        for mode in ("bm25", "dense", "none"):
            question = {"question": "Who sailed?", "mode": mode, "wait_for": token, "wait_seconds": 20}
            assert client.post("/retrieve", json=question).status_code == (400 if mode == "none" else 200)

        expected = {
            'gistream_events_accepted_total{op="upsert"}': 2,
            'gistream_events_accepted_total{op="delete"}': 1,
            'gistream_queries_total{mode="bm25",outcome="ok"}': 1,
            'gistream_queries_total{mode="unknown",outcome="bad-request"}': 1,
            'gistream_query_seconds_count{mode="dense"}': 1,
            'gistream_namespaces_open{role="reader"}': 1,
            "gistream_freshness_seconds_count": 3,
            "gistream_lag_events": 0,
            "gistream_passages_extracted_total > bool 0": 1,
            "gistream_texts_embedded_total > bool 1": 1,
            "gistream_commits_total > bool 0": 1,
            "histogram_quantile(0.99, gistream_commit_seconds_bucket) > bool 0": 1,
            "time() - gistream_newest_visible_event_timestamp_seconds < bool 600": 1,
            "process_resident_memory_bytes > bool 1e6": 1,
        }
        for query, value in expected.items():
            wait_until(lambda: prometheus.value(query) == value, timeout=20, what=f"{query} = {value}")  # noqa: B023

        # A metric with labels has no series before its first use.
        series = {labels["__name__"] for labels, _ in prometheus.values('{__name__=~"gistream_.*"}')}
        suffix = {"histogram": "_count", "counter": "", "gauge": ""}
        unlabelled = [name for name, metric in METRICS.items() if not metric.labels]
        assert [name for name in unlabelled if name + suffix[kind(name)] not in series] == []


def test_the_text_is_as_prometheus_wants_it(tmp_path: Path) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        without_tool("Prometheus")
    data = tmp_path / "data"
    data.mkdir()
    with process(data, embedding_dimensions=32) as (_, url):
        text = httpx.get(f"{url}/metrics").content
    checked = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, b""), checked.stderr.decode()
