"""From settings to parts: the log, the embedder and the pipeline that every command and the server are made of.

What a part is made of is imported when it is built: a command that only looks at the log does not pay for models and
tables, and nobody for the client of an endpoint that is not used.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from index.errors import BadRequest

if TYPE_CHECKING:
    from index.metrics import Metrics
    from index.models.base import Embedder
    from streams.applier import Pace
    from streams.connection import Connection
    from streams.events import Limits
    from streams.extract.base import Extractor
    from streams.feeds.book import Book
    from streams.log import Log
    from streams.pipeline import Pipeline

    from .settings import Settings


def log_path(settings: Settings) -> Path:
    return settings.data / "log.db"


def spending_path(settings: Settings) -> Path:
    return settings.data / "spending.db"


def open_log(settings: Settings) -> Log:
    """The log, counting on from behind every namespace of the data folder. Raises StoreError where it does not open."""
    from index.home import Home
    from streams.log import Log
    from streams.position import align

    log = Log(log_path(settings))
    align(log, Home(settings.data))
    return log


def book_path(settings: Settings) -> Path:
    return settings.data / "feeds.db"


def open_book(settings: Settings) -> Book:
    """The book of feeds. Raises StoreError where it does not open."""
    from streams.feeds.book import Book

    return Book(book_path(settings))


def open_book_if_any(settings: Settings) -> AbstractContextManager[Book | None]:
    """The book of feeds; nothing is made where no feed was ever added. Raises StoreError where it does not open."""
    return open_book(settings) if book_path(settings).exists() else nullcontext()


def connection(settings: Settings) -> Connection:
    """How Kafka is reached. Raises BadRequest where kafka_bootstrap is unset, or a user is needed and missing."""
    from streams.connection import Connection

    if settings.kafka_bootstrap is None:
        raise BadRequest("no Kafka is set", hint="set GISTREAM_KAFKA_BOOTSTRAP to host:port of a broker")
    return Connection(
        settings.kafka_bootstrap,
        prefix=settings.kafka_prefix,
        security=settings.kafka_security,
        mechanism=settings.kafka_sasl_mechanism,
        username=settings.kafka_username,
        password=settings.kafka_password.get_secret_value() if settings.kafka_password else None,
        ca_file=settings.kafka_ca_file,
        certificate_file=settings.kafka_certificate_file,
        key_file=settings.kafka_key_file,
    )


def foreign_connection(settings: Settings, bootstrap: str | None) -> Connection:
    """How a cluster is reached that a feed reads: its own, or that of the settings; the security is theirs in both.

    Raises BadRequest as `connection` does.
    """
    if bootstrap is None and settings.kafka_bootstrap is None:
        raise BadRequest("no Kafka is set", hint="name the brokers of the topic with --bootstrap")
    return connection(settings if bootstrap is None else settings.model_copy(update={"kafka_bootstrap": bootstrap}))


def limits(settings: Settings) -> Limits:
    """How large one event may be."""
    from streams.events import Limits

    return Limits(settings.max_document_bytes, settings.max_metadata_bytes)


def pace(settings: Settings) -> Pace:
    """How the embedded runner works."""
    from index.maintenance import Retention
    from streams.applier import Pace

    documents = settings.batch_documents
    if settings.extractor == "openai":
        # Batches that a model reads within seconds become visible within seconds; the next ones are read meanwhile.
        documents = min(documents, 2 * settings.extractor_concurrency)
    return Pace(
        documents,
        checkpoint_seconds=settings.checkpoint_seconds,
        mend_seconds=settings.mend_seconds,
        retention=Retention(reach=timedelta(hours=settings.retention_hours)),
        open_namespaces=settings.open_namespaces,
        exact_max=settings.exact_max,
    )


def build_embedder(settings: Settings) -> Embedder:
    """The model of passages and questions.

    Raises ModelError where a local model does not load, BadRequest where it has not the dimensions that are set.
    """
    if settings.embedder == "hashing":
        from index.models.hashing import DEFAULT_DIMENSIONS, HashingEmbedder

        return HashingEmbedder(settings.embedding_dimensions or DEFAULT_DIMENSIONS)
    if settings.embedder == "local":
        from index.models.local import DEFAULT_MODEL, LocalEmbedder

        model = settings.embedding_model or DEFAULT_MODEL
        local = LocalEmbedder(model, folder=settings.embedding_folder, threads=settings.embedding_threads)
        if settings.embedding_dimensions not in (None, local.dimensions):
            hint = "leave embedding_dimensions unset, or choose another model"
            raise BadRequest(f"the model {model} has {local.dimensions} dimensions", hint=hint)
        return local
    from index.models.openai import DEFAULT_MODEL as USUAL_MODEL
    from index.models.openai import OpenAIEmbedder

    return OpenAIEmbedder(
        settings.embedding_model or USUAL_MODEL,
        base_url=settings.embedding_base_url,
        api_key=_key(settings),
        dimensions=settings.embedding_dimensions,
    )


def build_pipeline(settings: Settings, metrics: Metrics | None = None) -> Pipeline:
    """Everything that decides what an index looks like; a model's calls are counted in `metrics`.

    Raises ModelError as `build_embedder` does, and StoreError where the ledger of a paid extractor does not open.
    """
    from streams.chunk import ChunkConfig
    from streams.pipeline import Pipeline

    return Pipeline(
        ChunkConfig(settings.chunker, settings.chunk_least, settings.chunk_most),
        build_extractor(settings, metrics),
        build_embedder(settings),
        alias_edges=settings.alias_edges,
        sentences=settings.sentences,
    )


def build_extractor(settings: Settings, metrics: Metrics | None = None) -> Extractor:
    """What reads passages."""
    kind, _, recording = settings.extractor.partition(":")
    if kind == "recorded":
        from streams.extract.recorded import RecordedExtractor

        return RecordedExtractor.load(recording)
    if kind == "openai":
        from streams.extract.openai import OpenAIExtractor
        from streams.extract.spending import Budget, Price, Spending

        spending = Spending(
            spending_path(settings),
            Budget(settings.budget_usd, settings.budget_tokens),
            Price(settings.extractor_price_input, settings.extractor_price_output),
        )
        return OpenAIExtractor(
            settings.extractor_model,
            spending,
            base_url=settings.extractor_base_url,
            api_key=_key(settings),
            strategy=settings.extractor_strategy,
            concurrency=settings.extractor_concurrency,
            timeout=settings.extractor_timeout,
            most_tokens=settings.extractor_most_tokens,
            metrics=metrics,
        )
    from streams.extract.rules import RulesExtractor

    return RulesExtractor()


def _key(settings: Settings) -> str:
    """The key of the endpoints; those on this machine take any."""
    return settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
