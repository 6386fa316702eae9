"""The real service over a temporary folder: what is written waits in the log until a test settles it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from deploy.receiving import receiver
from index.home import Home
from index.metrics import Metrics
from index.models.hashing import HashingEmbedder
from index.types import Extraction, Triple
from query.history import History
from query.parts import Parts
from query.readers import Readers
from query.service import create_app
from streams.chunk import CONTENT
from streams.events import DEFAULT_LIMITS, validated
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline


@dataclass(frozen=True)
class CapitalWords:
    """An extractor: capitalised words are entities, and neighbours among them are related."""

    fingerprint: str = "capital-words"

    def extract(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        names = [tuple(dict.fromkeys(re.findall(r"\b[A-Z]\w+", text))) for _, text in passages]
        return [
            Extraction(entities=one, triples=tuple(Triple(a, "beside", b) for a, b in pairwise(one))) for one in names
        ]


@dataclass
class Served:
    """`ask` sends what a client would send; `settle` makes everything accepted so far visible."""

    log: Log
    pipeline: Pipeline
    runner: Runner
    readers: Readers
    client: TestClient
    why_not_ready: list[str] = field(default_factory=list)

    def settle(self) -> None:
        self.runner.drain()
        for name in self.readers.home.names():
            self.readers.refresh(name)

    def put(self, id: str, text: str, namespace: str = "ns", **fields: Any) -> str:
        answer = self.client.put(f"/v1/namespaces/{namespace}/documents/{id}", json={"text": text, **fields})
        assert answer.status_code == 202, answer.text
        token: str = answer.json()["token"]
        return token

    def retrieve(self, question: str, namespace: str = "ns", **fields: Any) -> dict[str, Any]:
        answer = self.client.post(f"/v1/namespaces/{namespace}/retrieve", json={"question": question, **fields})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@contextmanager
def serving(data: Path, *, read_only: bool = False) -> Iterator[Served]:
    home, metrics, embedder = Home(data), Metrics(), HashingEmbedder(64)
    pipeline = Pipeline(CONTENT, CapitalWords(), embedder)
    why_not_ready: list[str] = []

    def staleness(namespace: str, positions: Mapping[str, int]) -> float:
        return float(len(log.read(namespace, positions.get("log", 0), 100, 2**20)))

    with (
        Log(data / "log.db") as log,
        Runner(home, log, pipeline) as runner,
        Readers(home, metrics) as readers,
    ):
        parts = Parts(
            readers=readers,
            history=History(readers, metrics),
            embedders=lambda made: embedder,
            decode=validated,
            inbox=None if read_only else log,
            staleness=staleness,
            dead_letters=runner.letters.count,
            not_ready=lambda: why_not_ready[0] if why_not_ready else None,
            metrics=metrics,
            receive=receiver(log, runner.letters, DEFAULT_LIMITS),
        )
        with TestClient(create_app(parts), raise_server_exceptions=False) as client:
            yield Served(log, pipeline, runner, readers, client, why_not_ready)
