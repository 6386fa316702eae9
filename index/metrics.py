"""What gistream counts and times: every metric with its unit, its meaning and what to do when it looks wrong.

No metric has a label for the namespace: there may be thousands, and each would be a series of its own. What is known
about one namespace is in its status; here is how the process does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, get_args

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

__all__ = ["CONTENT_TYPE", "METRICS", "CounterName", "GaugeName", "HistogramName", "Metric", "MetricName", "Metrics"]

CounterName = Literal[
    "gistream_events_accepted_total",
    "gistream_events_superseded_total",
    "gistream_events_dead_lettered_total",
    "gistream_passages_understood_total",
    "gistream_passages_extracted_total",
    "gistream_passages_reused_total",
    "gistream_passages_degraded_total",
    "gistream_passages_mended_total",
    "gistream_model_calls_total",
    "gistream_model_retries_total",
    "gistream_model_tokens_total",
    "gistream_model_cost_usd_total",
    "gistream_texts_embedded_total",
    "gistream_rows_indexed_total",
    "gistream_commits_total",
    "gistream_writers_fenced_total",
    "gistream_namespaces_opened_total",
    "gistream_namespaces_evicted_total",
    "gistream_rebuilds_total",
    "gistream_queries_total",
    "gistream_as_of_total",
    "gistream_feed_events_total",
    "gistream_feed_rejected_total",
    "gistream_feed_failures_total",
]
GaugeName = Literal[
    "gistream_lag_events",
    "gistream_lag_seconds",
    "gistream_newest_visible_event_timestamp_seconds",
    "gistream_dead_letters_waiting",
    "gistream_vectors_open",
    "gistream_namespaces_open",
    "gistream_namespaces_in_trouble",
    "gistream_older_snapshots_held",
    "gistream_model_calls_in_flight",
    "gistream_worker_partitions",
    "gistream_worker_events_under_way",
    "gistream_feed_last_success_timestamp_seconds",
    "gistream_rebuild_documents_left",
]
HistogramName = Literal[
    "gistream_freshness_seconds",
    "gistream_batch_documents",
    "gistream_commit_seconds",
    "gistream_embed_seconds",
    "gistream_extract_seconds",
    "gistream_model_call_seconds",
    "gistream_checkpoint_seconds",
    "gistream_maintenance_seconds",
    "gistream_snapshot_swap_seconds",
    "gistream_query_seconds",
    "gistream_filter_seconds",
    "gistream_older_snapshot_open_seconds",
]
MetricName = CounterName | GaugeName | HistogramName


class Metric(NamedTuple):
    """What an operator has to know about one metric."""

    unit: str
    meaning: str
    remedy: str
    labels: tuple[str, ...] = ()


METRICS: Final[Mapping[MetricName, Metric]] = {
    "gistream_events_accepted_total": Metric(
        "events",
        "Events that the service stored durably and acknowledged, by operation.",
        "Flat while a feed runs: look for refused requests, and at the feed itself.",
        ("op",),
    ),
    "gistream_events_superseded_total": Metric(
        "events",
        "Events that changed nothing because an equal or newer version of the document had come.",
        "A large share means that a source replays, or that two sources write the same documents.",
    ),
    "gistream_events_dead_lettered_total": Metric(
        "events",
        "Events that could not be indexed, by the step that refused them.",
        "Read the reasons with `gistream dead-letters list`, repair the source, then replay.",
        ("step",),
    ),
    "gistream_passages_understood_total": Metric(
        "passages",
        "Passages whose events an understanding worker told of: all that models say about them is kept.",
        "Standing still while documents arrive: a model is away, or held by its budget; the worker's log says which.",
    ),
    "gistream_passages_extracted_total": Metric(
        "passages",
        "Passages that were new or changed, and were read or looked up in what was read before.",
        "Each costs extract and embed seconds, and calls where a model is paid; compare it with those reused.",
    ),
    "gistream_passages_reused_total": Metric(
        "passages",
        "Passages of changed documents that stayed as they were.",
        "Near zero while documents are edited: the edits rewrite whole documents.",
    ),
    "gistream_passages_degraded_total": Metric(
        "passages",
        "Passages indexed by the fallback because the model failed on them.",
        "Check the model's endpoint; they are read again later by themselves.",
    ),
    "gistream_passages_mended_total": Metric(
        "passages",
        "Passages that were indexed by the fallback, read again, and understood by the model this time.",
        "Flat though passages are degraded: the model fails on them for good; the process's log says why.",
    ),
    "gistream_model_calls_total": Metric(
        "calls",
        "Calls of the extractor's model, by what became of them; the client's own retries are no calls of their own.",
        "Other outcomes than `answered`: garbage and truncated are the model's, refused its filter's, misset the "
        "settings', unavailable the endpoint's fault.",
        ("outcome",),
    ),
    "gistream_model_retries_total": Metric(
        "retries",
        "Times that the client asked the endpoint again because it was busy, failed or did not answer.",
        "As many as calls: the endpoint is overloaded; lower extractor_concurrency.",
    ),
    "gistream_model_tokens_total": Metric(
        "tokens",
        "Tokens sent to the extractor's model and received from it, by direction (`input` or `output`).",
        "Times the prices this is the bill; compare it with the passages extracted.",
        ("direction",),
    ),
    "gistream_model_cost_usd_total": Metric(
        "US dollars",
        "Cost of the extractor's calls at the prices in the settings.",
        "Stays 0: the prices are not set. Rising faster than documents come: edits rewrite whole documents.",
    ),
    "gistream_texts_embedded_total": Metric(
        "texts",
        "Texts sent to the embedder.",
        "Times the price of a text, this is the bill; compare it with the passages extracted.",
    ),
    "gistream_rows_indexed_total": Metric(
        "rows",
        "Rows brought into indexes of large tables, by index and step: `trained` is a whole index, `added` new rows.",
        "`trained` again and again: a table's size sways about exact_max; set it well above or below.",
        ("index", "step"),
    ),
    "gistream_commits_total": Metric(
        "commits",
        "Batches committed, each a new snapshot.",
        "Flat while gistream_lag_events grows: the writer is stuck; read its log and /health/ready.",
    ),
    "gistream_writers_fenced_total": Metric(
        "writers",
        "Writers of this process that another one took over from.",
        "Once, after a fail-over, is right. Repeated: two servers run on one data folder; stop one.",
    ),
    "gistream_namespaces_opened_total": Metric(
        "namespaces",
        "Namespaces opened for reading or writing, by role; one that is closed and opened again counts again.",
        "Nearly as many as commits: more are under way than are held open; raise the setting open_namespaces.",
        ("role",),
    ),
    "gistream_namespaces_evicted_total": Metric(
        "namespaces",
        "Namespaces closed to make room for others or because nothing came for them, by role.",
        "Follows those opened: raise the setting open_namespaces where there is memory for it.",
        ("role",),
    ),
    "gistream_rebuilds_total": Metric(
        "rebuilds",
        "Namespaces that other settings had made and that the service made anew.",
        "Growing without a change of settings: two services with different settings take turns; give them the same.",
    ),
    "gistream_queries_total": Metric(
        "questions",
        "Questions answered or refused, by mode and outcome (`ok` or the kind of error).",
        "Outcomes other than ok: the answer's problem document says why.",
        ("mode", "outcome"),
    ),
    "gistream_as_of_total": Metric(
        "requests",
        "Requests for the state at a snapshot or moment, by outcome: `held` in memory, `opened`, `gone`, `unknown`.",
        "Many `gone`: raise retention_hours. Many `opened` against `held`: questions go back to ever other snapshots.",
        ("outcome",),
    ),
    "gistream_feed_events_total": Metric(
        "events",
        "Events that a feed of this process delivered to the log, by feed.",
        "Flat while its source changes: `gistream feed list` shows when it last succeeded, and why it does not.",
        ("feed",),
    ),
    "gistream_feed_rejected_total": Metric(
        "items",
        "Items of a feed's source that could not become events, by feed.",
        "Read the reasons with `gistream dead-letters list` and repair the source; the feed sees it by itself.",
        ("feed",),
    ),
    "gistream_feed_failures_total": Metric(
        "looks",
        "Looks at a feed's source that failed, by feed.",
        "Growing: the source is away or refuses; `gistream feed list` shows the reason. It is tried again by itself.",
        ("feed",),
    ),
    "gistream_lag_events": Metric(
        "events",
        "Events accepted and not yet visible.",
        "Growing: events come faster than they are applied; see which of the seconds below grew with it.",
    ),
    "gistream_lag_seconds": Metric(
        "seconds",
        "Age of the oldest event that is accepted and not yet visible; 0 without one.",
        "Growing steadily: one namespace is stuck, even if the others flow; `gistream status` shows which.",
    ),
    "gistream_newest_visible_event_timestamp_seconds": Metric(
        "seconds since 1970",
        "Time of acceptance of the newest event that this process made visible; 0 before the first.",
        "Old while gistream_lag_events is 0: nothing comes in; look at the sources.",
    ),
    "gistream_dead_letters_waiting": Metric(
        "dead letters",
        "Dead letters not yet replayed or removed.",
        "Above 0: documents are missing from the index; `gistream dead-letters list`.",
    ),
    "gistream_vectors_open": Metric(
        "vectors",
        "Vectors that questions of this process can reach, by place: held in memory, or left in an indexed table.",
        "Memory too small: lower exact_max. Vectors above exact_max stay in memory until the writer has indexed them.",
        ("place",),
    ),
    "gistream_namespaces_open": Metric(
        "namespaces",
        "Namespaces this process holds open for reading or writing, by role.",
        "Together with memory: close to the limit means that they are opened and evicted in turns.",
        ("role",),
    ),
    "gistream_namespaces_in_trouble": Metric(
        "namespaces",
        "Namespaces that cannot be indexed for the moment, while the others go on.",
        "Above 0: the log says of each what is wrong and what to do; its events wait.",
    ),
    "gistream_older_snapshots_held": Metric(
        "snapshots",
        "Older snapshots kept open for questions about the past.",
        "It is bounded; together with memory it shows what the past costs.",
    ),
    "gistream_model_calls_in_flight": Metric(
        "calls",
        "Calls of the extractor's model that are under way.",
        "At extractor_concurrency while events wait: the model is the bottleneck; raise it if the endpoint allows.",
    ),
    "gistream_worker_partitions": Metric(
        "partitions",
        "Partitions that this worker was assigned.",
        "Zero for long: there are more workers than partitions, or this one is no member of its group.",
    ),
    "gistream_worker_events_under_way": Metric(
        "events",
        "Events that this worker has fetched and not finished.",
        "At its bound for long: a namespace in trouble holds its partition up, or the worker is the bottleneck.",
    ),
    "gistream_feed_last_success_timestamp_seconds": Metric(
        "seconds since 1970",
        "When the source of a feed was last read to its end, by feed; 0 before the first time.",
        "Older than the feed's interval: the source is away or the feed hangs; `gistream feed list` shows the reason.",
        ("feed",),
    ),
    "gistream_rebuild_documents_left": Metric(
        "documents",
        "Documents still to be read of the namespaces that are being made anew; their new events wait meanwhile.",
        "Standing still: the log of the service says of each namespace what is wrong; see embed and extract seconds.",
    ),
    "gistream_freshness_seconds": Metric(
        "seconds",
        "From the acceptance of an event to the commit that shows it.",
        "Its 99th percentile is the promise to readers; when it grows, look at lag, embed and commit seconds.",
    ),
    "gistream_batch_documents": Metric(
        "documents",
        "Documents in one commit.",
        "Always at the setting batch_documents: the writer is the bottleneck.",
    ),
    "gistream_commit_seconds": Metric(
        "seconds",
        "One batch from its passages to its manifest: embedding and writing.",
        "Growing with the size of the index, and embed seconds do not: maintenance does not keep up; see its seconds.",
    ),
    "gistream_embed_seconds": Metric(
        "seconds",
        "One call of the embedder, retries included.",
        "Much longer than usual: the endpoint is slow or refuses; freshness follows it.",
    ),
    "gistream_extract_seconds": Metric(
        "seconds",
        "One call of the extractor, retries included; with a model, one passage.",
        "Much longer than usual: the endpoint is slow or refuses; freshness follows it.",
    ),
    "gistream_model_call_seconds": Metric(
        "seconds",
        "One call of the extractor's model, retries included.",
        "Growing with the concurrency: the endpoint queues; a lower concurrency is as fast.",
    ),
    "gistream_checkpoint_seconds": Metric(
        "seconds",
        "Making all commits since the last checkpoint durable.",
        "Seconds instead of milliseconds: the disk is slow or full.",
    ),
    "gistream_maintenance_seconds": Metric(
        "seconds",
        "Work between commits, by task: merging segments, compacting and indexing tables, cleaning old versions.",
        "As long as the commits together: raise batch_documents, so that fewer small pieces arise.",
        ("task",),
    ),
    "gistream_snapshot_swap_seconds": Metric(
        "seconds",
        "A reader's step to a newer snapshot.",
        "Growing with the size of the index: the reader loads whole tables again; its log says why.",
    ),
    "gistream_query_seconds": Metric(
        "seconds",
        "One question, from the text to the ranked passages, by mode; waiting for a write is not in it.",
        "Compare modes; where all grow together, with the size of the index or with the processor's load, add readers.",
        ("mode",),
    ),
    "gistream_filter_seconds": Metric(
        "seconds",
        "Finding out which passages a filter admits; part of the query seconds.",
        "The first filter on a namespace reads every passage, a new one looks at all metadata; if others are slow, "
        "the metadata of nearly every document changes all the time.",
    ),
    "gistream_older_snapshot_open_seconds": Metric(
        "seconds",
        "Opening an older snapshot by going back from the newest.",
        "It grows with what changed since: ask a moment less long ago, or ask the same one again.",
    ),
}

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_DOCUMENTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


class Metrics:
    """The metrics of one process in a registry of their own, with the process's memory, CPU and open files.

    Safe for threads. The labels of a metric are passed by name, all that METRICS lists; others are a ValueError.
    """

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._counters: dict[CounterName, Counter] = {
            name: Counter(name, METRICS[name].meaning, METRICS[name].labels, registry=registry)
            for name in get_args(CounterName)
        }
        self._gauges: dict[GaugeName, Gauge] = {
            name: Gauge(name, METRICS[name].meaning, METRICS[name].labels, registry=registry)
            for name in get_args(GaugeName)
        }
        self._histograms: dict[HistogramName, Histogram] = {
            name: Histogram(
                name,
                METRICS[name].meaning,
                METRICS[name].labels,
                registry=registry,
                buckets=_DOCUMENTS if METRICS[name].unit == "documents" else _SECONDS,
            )
            for name in get_args(HistogramName)
        }

    def count(self, name: CounterName, amount: float = 1, **labels: str) -> None:
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def watch(self, name: GaugeName, read: Callable[[], float], **labels: str) -> None:
        """Let `read` give the value whenever metrics are asked for, so that it stays true while nothing else moves."""
        gauge = self._gauges[name]
        (gauge.labels(**labels) if labels else gauge).set_function(read)

    def observe(self, name: HistogramName, value: float, **labels: str) -> None:
        histogram = self._histograms[name]
        (histogram.labels(**labels) if labels else histogram).observe(value)

    @contextmanager
    def timed(self, name: HistogramName, **labels: str) -> Iterator[None]:
        """Observe the seconds that the block takes, also where it raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.observe(name, time.perf_counter() - started, **labels)

    @property
    def registry(self) -> CollectorRegistry:
        """For a server that shows it."""
        return self._registry

    def render(self) -> bytes:
        """Everything in Prometheus's text format (content type CONTENT_TYPE)."""
        return generate_latest(self._registry)
