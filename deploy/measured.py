"""What is counted and timed of a running pipeline beside its runner: its models, and how far the runner has got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from index.metrics import Metrics
from index.models.base import Embedder
from index.types import Extraction, Role
from streams.extract.base import Extractor, PaidExtractor
from streams.local import Runner
from streams.pipeline import Pipeline

from .lag import Lag


@dataclass(frozen=True, slots=True)
class MeasuredEmbedder:
    """An embedder in every respect the one inside."""

    inside: Embedder
    metrics: Metrics

    @property
    def fingerprint(self) -> str:
        return self.inside.fingerprint

    @property
    def dimensions(self) -> int:
        return self.inside.dimensions

    @property
    def alias_threshold(self) -> float | None:
        return self.inside.alias_threshold

    @property
    def remote(self) -> bool:
        return self.inside.remote

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        """See Embedder."""
        self.metrics.count("gistream_texts_embedded_total", len(texts))
        with self.metrics.timed("gistream_embed_seconds"):
            return self.inside.embed(texts, role)


@dataclass(frozen=True, slots=True)
class MeasuredExtractor:
    """An extractor in every respect the one inside."""

    inside: Extractor
    metrics: Metrics

    @property
    def fingerprint(self) -> str:
        return self.inside.fingerprint

    def extract(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        """See Extractor."""
        with self.metrics.timed("gistream_extract_seconds"):
            found = self.inside.extract(passages)
        self.metrics.count("gistream_passages_degraded_total", sum(extraction.degraded for extraction in found))
        return found


def measured(pipeline: Pipeline, metrics: Metrics) -> Pipeline:
    """The same pipeline, whose models are counted and timed in `metrics`; a paid extractor does that itself."""
    extractor = pipeline.extractor
    return replace(
        pipeline,
        extractor=extractor if isinstance(extractor, PaidExtractor) else MeasuredExtractor(extractor, metrics),
        embedder=MeasuredEmbedder(pipeline.embedder, metrics),
    )


def watch_runner(metrics: Metrics, runner: Runner, lag: Lag) -> None:
    """Have the gauges of ingest read from the runner and its log whenever somebody asks for them."""
    metrics.watch("gistream_dead_letters_waiting", runner.letters.count)
    metrics.watch("gistream_lag_events", lag.events)
    metrics.watch("gistream_lag_seconds", lag.seconds)
    metrics.watch("gistream_namespaces_open", lambda: len(runner.writers()), role="writer")
    metrics.watch("gistream_namespaces_in_trouble", lambda: len(runner.troubles))
    metrics.watch("gistream_rebuild_documents_left", lambda: _documents_left(runner))
    metrics.watch("gistream_newest_visible_event_timestamp_seconds", lambda: runner.watermark / 1e6)


def _documents_left(runner: Runner) -> int:
    return sum(total - done for done, total in runner.renewals.progress().values())
