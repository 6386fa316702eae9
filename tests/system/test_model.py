"""A model that fails as models do leaves the same index as one that never failed, and is paid once for a passage."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deploy.assembly import build_pipeline, spending_path
from deploy.settings import load
from index.errors import GistreamError
from index.home import Home
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.types import DocumentEvent
from streams import trouble
from streams.applier import Pace
from streams.chunk import ChunkConfig
from streams.extract.openai import OpenAIExtractor
from streams.extract.spending import Spending
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline
from streams.rebuild import verify
from tests.support import GISTREAM

from ..streams import model_endpoint as endpoints
from ..streams.model_endpoint import Endpoint, Fault, serving
from ..support import wait_until
from .histories import NAMESPACE, SENTENCES, Step, histories
from .test_incremental_equals_rebuild import AS_EVER, GONE, STEP, check, sent

ROOT = Path(__file__).resolve().parents[2]
CONCURRENCY = 4
MENDING = Pace(mend_seconds=0.0)
"""Degraded passages are read again at every step."""


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (0.0,))


def asking(endpoint: Endpoint, folder: Path, **options: Any) -> Pipeline:
    spending = Spending(folder / "spending.db")
    extractor = OpenAIExtractor(
        "m", spending, base_url=endpoint.url, concurrency=CONCURRENCY, **{"max_retries": 0, "timeout": 10.0, **options}
    )
    return Pipeline(ChunkConfig(least=8, most=24), extractor, HashingEmbedder(64))


def degraded(folder: Path) -> int:
    """Passages of the newest snapshot that the rules read."""
    return int(Reader(folder).snapshot.dataset("passages").count_rows("degraded"))


def mended(runner: Runner) -> None:
    """Apply everything, and go on until no passage is degraded."""
    runner.drain()
    if NAMESPACE in runner.home.names():
        folder = runner.home.incarnation(NAMESPACE)
        wait_until(lambda: runner.step() or not degraded(folder), what="every passage being understood")


FAULTS: Sequence[Fault] = (
    endpoints.garbage,
    endpoints.other_form,
    endpoints.truncated,
    endpoints.refused,
    endpoints.filtered,
    endpoints.disconnect,
    endpoints.status(429),
    endpoints.status(500),
    endpoints.status(503),
    endpoints.status(413),
)
faults = st.lists(st.sampled_from(FAULTS), max_size=25)


@pytest.mark.slow
@given(histories, faults, st.sampled_from(["combined", "staged"]))
@example([sent("a", 0, 2), STEP, GONE, STEP, sent("a", 0, 2)], [endpoints.truncated], "combined")
@example([sent("a", 0, 1, 2, 3, 4, 5, 6), STEP, sent("b", 0, 1, 2)], [endpoints.status(500)] * 4, "staged")
@settings(max_examples=12)
def test_incremental_equals_rebuild_whatever_the_model_does(
    history: Sequence[Step], faults: Sequence[Fault], strategy: str
) -> None:
    with TemporaryDirectory() as name, serving() as endpoint:
        endpoint.faults += faults
        check(Path(name), history, asking(endpoint, Path(name), strategy=strategy), MENDING, mended)
        if strategy == "combined":
            assert set(endpoint.answered.values()) <= {1}, "a passage was paid for twice"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as server:
        yield server


class Indexed:
    """A data folder with documents of one namespace, and runners that come and go."""

    def __init__(self, folder: Path, log: Log, endpoint: Endpoint) -> None:
        self.home, self.log, self.endpoint = Home(folder), log, endpoint
        self.pipeline = asking(endpoint, folder)

    def send(self, id: str, *sentences: int, op: Any = "upsert") -> None:
        text = " ".join(SENTENCES[number] for number in sentences)
        self.log.append([DocumentEvent(op=op, namespace=NAMESPACE, id=id, text=text)])

    def run(self, apply: Callable[[Runner], None] = Runner.drain, pace: Pace = AS_EVER) -> None:
        with closing(Runner(self.home, self.log, self.pipeline, pace=pace)) as runner:
            apply(runner)
            assert not runner.letters.count()

    @property
    def folder(self) -> Path:
        return self.home.incarnation(NAMESPACE)

    def differences(self) -> list[str]:
        return list(map(str, verify(self.home, NAMESPACE, self.pipeline)))


@pytest.fixture
def indexed(tmp_path: Path, endpoint: Endpoint) -> Iterator[Indexed]:
    with Log(tmp_path / "log.db") as log:
        yield Indexed(tmp_path, log, endpoint)


def test_edits_returns_rebuilds_and_checks_are_free(indexed: Indexed) -> None:
    indexed.send("a", *range(10))
    indexed.run()
    bought = sum(indexed.endpoint.asked.values())
    assert bought == len(indexed.endpoint.answered) > 3
    indexed.send("a", op="delete")
    indexed.run()
    indexed.send("a", *range(10))
    indexed.send("twin", *range(10))
    indexed.run()
    assert not indexed.differences()
    assert sum(indexed.endpoint.asked.values()) == bought
    indexed.send("a", *range(5), 0, *range(5, 10))
    indexed.run()
    assert bought < sum(indexed.endpoint.asked.values()) <= bought + 2, "an edit is read where it is"


def test_what_the_rules_read_meanwhile_is_checked_without_a_call_and_mended_later(indexed: Indexed) -> None:
    indexed.endpoint.poison["Quill"] = endpoints.refused
    indexed.send("a", *range(10))
    indexed.run()
    assert degraded(indexed.folder) > 0
    asked = sum(indexed.endpoint.asked.values())
    assert not indexed.differences()
    assert sum(indexed.endpoint.asked.values()) == asked
    before = Reader(indexed.folder).snapshot.manifest

    indexed.endpoint.poison.clear()
    indexed.run(mended, MENDING)
    assert degraded(indexed.folder) == 0
    after = Reader(indexed.folder).snapshot.manifest
    assert (after.positions, after.watermark) == (before.positions, before.watermark), "no event came"
    assert not indexed.differences()
    assert set(indexed.endpoint.answered.values()) == {1}


def test_a_misset_model_stops_a_drain_and_loses_nothing(indexed: Indexed) -> None:
    indexed.send("a", *range(10))
    indexed.endpoint.faults += [endpoints.status(401)] * CONCURRENCY
    with pytest.raises(GistreamError, match="OPENAI_API_KEY"):
        indexed.run()
    indexed.endpoint.faults.clear()
    indexed.run()
    assert not indexed.differences()


@pytest.mark.slow
def test_kills_cost_no_more_than_the_calls_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gistream ingest`, killed twice: nothing that was answered before the kill is asked again."""
    lines = tmp_path / "documents.jsonl"
    texts = [" ".join(SENTENCES[(number + place) % 10] for place in range(5)) for number in range(10)]
    documents = [{"id": str(n), "title": f"Paper {n}", "text": texts[n % 10] + f" It is {n}."} for n in range(40)]
    lines.write_text("".join(json.dumps(document) + "\n" for document in documents))
    kills = 2
    with serving(latency=0.15) as endpoint:
        for name, value in variables(tmp_path, endpoint).items():
            monkeypatch.setenv(f"GISTREAM_{name}", value)
        for round in range(1, kills + 1):
            with ingesting(lines) as process:
                wait_until(partial(answered_or_ended, endpoint, 12 * round, process), timeout=100, what="answers")
                assert process.poll() is None, f"round {round} ended by itself"
                process.kill()
            wait_until(lambda: endpoint.active == 0, what="the end of the calls of the dead")
        with ingesting(lines) as process:
            out, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        assert len(endpoint.answered) == 40 == json.loads(out)["indexed"]
        answered = sum(endpoint.answered.values())
        assert answered - 40 <= kills * CONCURRENCY, "an answer was paid for twice"

        settings = load()
        with closing(Spending(spending_path(settings))) as ledger:
            assert answered - kills * CONCURRENCY <= ledger.totals().calls <= answered, "the bill tells the same"
        assert not list(verify(Home(settings.data), NAMESPACE, build_pipeline(settings)))
        assert sum(endpoint.answered.values()) == answered


def answered_or_ended(endpoint: Endpoint, calls: int, process: subprocess.Popen[str]) -> bool:
    return process.poll() is not None or sum(endpoint.answered.values()) >= calls


def variables(folder: Path, endpoint: Endpoint) -> dict[str, str]:
    """Settings of a process that asks the endpoint."""
    return {
        "DATA": str(folder / "data"),
        "EXTRACTOR": "openai",
        "EXTRACTOR_BASE_URL": endpoint.url,
        "EXTRACTOR_CONCURRENCY": str(CONCURRENCY),
        "CHUNKER": "whole",
        "EMBEDDING_DIMENSIONS": "32",
    }


def ingesting(lines: Path) -> subprocess.Popen[str]:
    command = [*GISTREAM, "ingest", NAMESPACE, str(lines), "--json"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
