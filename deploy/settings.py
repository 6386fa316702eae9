"""Every setting in one frozen value, read from environment variables and a TOML file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, TomlConfigSettingsSource
from pydantic_settings import PydanticBaseSettingsSource as Source

from index.errors import BadRequest
from index.limits import EXACT_MAX

PREFIX: Final = "GISTREAM_"
CONFIG_VARIABLE: Final = "GISTREAM_CONFIG"
"""Names the TOML file; without it gistream.toml of the working folder is read, where there is one."""
CONFIG_FILE: Final = "gistream.toml"


class Settings(BaseSettings):
    """What an operator decides. Sizes, times and counts carry their unit in the description."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        loc_by_alias=False,
        populate_by_name=True,
        str_strip_whitespace=True,
        use_attribute_docstrings=True,
    )

    data: Annotated[Path, AfterValidator(Path.expanduser)] = Path("data")
    """Folder of the log and of every namespace; made where it is missing."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """Address the service listens on; 0.0.0.0 is every interface."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port the service listens on; 0 takes any free one."""

    chunker: Literal["content", "whole"] = "content"
    """How a document is cut: at boundaries that its content defines, or not at all."""
    chunk_least: int = Field(default=50, ge=1, le=10_000)
    """Fewest words of a passage; at most a third of chunk_most."""
    chunk_most: int = Field(default=180, ge=3, le=30_000)
    """Most words of a passage."""
    extractor: str = Field(default="rules", pattern=r"^(rules|openai|recorded:.+)$")
    """What reads a passage: rules, openai to ask a model behind its protocol, or recorded:NAME to replay a file."""
    extractor_base_url: str | None = Field(default=None, pattern=r"^https?://")
    """Address of the extractor's endpoint, ending in /v1; unset is the client's default."""
    extractor_model: str = Field(default="gpt-4o-mini", min_length=1)
    """Model the extractor's endpoint is asked for."""
    extractor_strategy: Literal["combined", "staged"] = "combined"
    """One call a passage, or three: for its memory, then its names, then its facts."""
    extractor_concurrency: int = Field(default=16, ge=1, le=1000)
    """Passages the extractor's model reads at a time."""
    extractor_timeout: float = Field(default=60.0, gt=0, le=3600)
    """Most seconds one try of a call may take; a call that fails is tried four times."""
    extractor_most_tokens: int = Field(default=4096, ge=64, le=2**20)
    """Most tokens of one answer; a longer one is cut off, and its passage read by the rules."""
    extractor_price_input: float = Field(default=0.0, ge=0)
    """US dollars for a million tokens sent to the extractor's model."""
    extractor_price_output: float = Field(default=0.0, ge=0)
    """US dollars for a million tokens of its answers."""
    budget_usd: float | None = Field(default=None, ge=0)
    """US dollars the extractor may spend, counted since the data folder was made; then documents wait in the log."""
    budget_tokens: int | None = Field(default=None, ge=0)
    """Tokens the extractor may use, counted in the same way."""
    embedder: Literal["hashing", "local", "openai"] = "hashing"
    """What makes vectors: hashing needs no model; local runs one here; openai asks an endpoint of its protocol."""
    embedding_base_url: str | None = Field(default=None, pattern=r"^https?://")
    """Address of the embedding endpoint, ending in /v1; unset is the client's default."""
    embedding_model: str | None = Field(default=None, min_length=1)
    """Embedding model; unset is text-embedding-3-small for openai, sentence-transformers/all-MiniLM-L6-v2 for local."""
    embedding_dimensions: int | None = Field(default=None, ge=1, le=4096)
    """Length of a vector; unset is 384 for hashing, and what the model gives otherwise."""
    embedding_folder: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    """Folder of the local model's files, in ONNX; unset has them downloaded once."""
    embedding_threads: int = Field(default=1, ge=1, le=256)
    """Threads that one call of the local model works with; more only where processors are idle."""
    former_embedding_base_url: str | None = Field(default=None, pattern=r"^https?://")
    """Endpoint of the model that indexes were made with before, until they are rebuilt; unset is embedding_base_url."""
    former_embedding_folder: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    """Folder of the local model that indexes were made with before; unset is embedding_folder."""
    rebuild_on_change: bool = True
    """Let the service make a namespace anew that other settings made; the former index answers until it is done."""
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    """Key for the endpoints; those on this machine need none."""
    alias_edges: bool = True
    """Link entities whose names mean the same; only embedders that declare a threshold do."""
    sentences: bool = True
    """Keep every sentence with its vector and names, which the mode fused reads; three quarters of what is embedded."""

    run_feeds: bool = True
    """Whether the server runs the feeds that were added with `gistream feed add`."""

    kafka_bootstrap: str | None = Field(default=None, pattern=r"^[^\s,]+:\d+(,[^\s,]+:\d+)*$")
    """host:port of some Kafka brokers, separated by commas; unset keeps events in the log of this machine."""
    kafka_prefix: str = Field(default="", pattern=r"^[A-Za-z0-9._-]{0,100}$")
    """Put before the name of every topic and group, so that several installations share a cluster."""
    kafka_security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Whether the connection to Kafka is encrypted (SSL), and whether it needs a user and a password (SASL)."""
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    """How the password is proved to Kafka."""
    kafka_username: str | None = Field(default=None, min_length=1)
    """User of Kafka, where kafka_security asks for one."""
    kafka_password: SecretStr | None = None
    """Its password."""
    kafka_ca_file: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    """PEM file of the authority that signed the certificates of the brokers; unset trusts what the system trusts."""
    kafka_certificate_file: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    """PEM file of a certificate of our own, where Kafka asks for one."""
    kafka_key_file: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    """PEM file of its key; unset where the certificate's file holds it."""
    kafka_partitions: int = Field(default=12, ge=1, le=10_000)
    """Partitions of the topics of events when `gistream topics create` makes them; they never change afterwards."""
    kafka_replication: int | None = Field(default=None, ge=1, le=100)
    """Brokers that hold each record; unset is 3 where the cluster has as many, else 1."""
    worker_session_seconds: float = Field(default=10.0, ge=1, le=300)
    """Seconds without a sign of life after which a worker's partitions go to others."""
    worker_stalled_seconds: float = Field(default=300.0, ge=5, le=24 * 3600)
    """Seconds without progress, though there is something to do, after which a worker ends and is started again."""
    worker_metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Port of the metrics of a machine's first understanding worker; the first applying one has the next, and so on."""
    kafka_retention_hours: float = Field(default=168.0, ge=1, le=24 * 3650)
    """Hours that events which were understood wait to be indexed; what is older is lost to a worker that was away."""

    exact_max: int = Field(default=EXACT_MAX, ge=0, le=10**8)
    """Rows of a table up to which its vectors are held in memory and all compared; larger ones are indexed on disk."""
    batch_documents: int = Field(default=256, ge=1, le=100_000)
    """Most documents in one commit."""
    mend_seconds: float = Field(default=600.0, gt=0, le=7 * 24 * 3600)
    """Seconds until passages that the extractor's model could not read are tried again."""
    checkpoint_seconds: float = Field(default=5.0, gt=0, le=3600)
    """Seconds between two moments at which commits are fsynced."""
    open_namespaces: int = Field(default=64, ge=1, le=10_000)
    """Most namespaces held open at a time, for writing and for reading each; the least recently used is closed."""
    retention_hours: float = Field(default=24.0, ge=0, le=24 * 3650)
    """Hours an older snapshot stays readable."""

    max_document_bytes: int = Field(default=16 * 2**20, ge=1, le=2**30)
    """Largest title and text of a document, in bytes."""
    max_metadata_bytes: int = Field(default=64 * 2**10, ge=2, le=2**24)
    """Largest metadata of a document, in bytes of JSON."""
    wait_timeout: float = Field(default=30.0, gt=0, le=3600)
    """Most seconds a read waits for the write it names to become visible."""

    @model_validator(mode="after")
    def _passages_can_be_cut(self) -> Self:
        if self.chunk_least > self.chunk_most // 3:
            raise ValueError(f"chunk_least ({self.chunk_least}) is more than a third of chunk_most ({self.chunk_most})")
        return self

    @model_validator(mode="after")
    def _budget_can_be_counted(self) -> Self:
        if self.budget_usd is not None and not (self.extractor_price_input or self.extractor_price_output):
            raise ValueError("budget_usd needs extractor_price_input and extractor_price_output")
        return self

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: Source, env_settings: Source, *_: Source, **__: Source
    ) -> tuple[Source, ...]:
        """What the program gives, then the environment, then the file."""
        return init_settings, env_settings, _file(settings_cls)


class Setting(NamedTuple):
    """One setting as it stands, ready to be printed; a secret shows as asterisks."""

    name: str
    variable: str
    default: str
    value: str
    source: str
    """`default`, `environment`, or the path of the file."""
    description: str


def load(options: Mapping[str, object] | None = None) -> Settings:
    """The settings that hold: `options` of a command before the environment, before the file, before the defaults.

    An option that is None and a variable that is empty count as not given. Raises BadRequest for a value out of bounds,
    for a file that cannot be read, and for a variable or key that nothing reads: a misspelt setting must not pass in
    silence.
    """
    known = [variable(name) for name in Settings.model_fields]
    for found in os.environ:
        if found.startswith(PREFIX) and found not in (*known, CONFIG_VARIABLE):
            raise BadRequest(f"no setting reads the environment variable {found}", hint=_suggestion(found, known))
    given: dict[str, Any] = {name: value for name, value in (options or {}).items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise _refusal(error, given) from None


def explain() -> list[Setting]:
    """Every setting with its value and where that came from, in the order of `Settings`. Raises as `load` does."""
    settings, sources = load(), _sources()
    return [
        Setting(
            name,
            variable(name),
            _shown(field.default),
            _shown(getattr(settings, name)),
            sources.get(name, "default"),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]


def variable(name: str) -> str:
    """The environment variable of the setting `name`: everybody's where there is one, else GISTREAM_ and its name."""
    return str(Settings.model_fields[name].validation_alias or PREFIX + name.upper())


def _file(settings: type[BaseSettings]) -> TomlConfigSettingsSource:
    named = os.environ.get(CONFIG_VARIABLE)
    path = Path(named or CONFIG_FILE).expanduser()
    if named and not path.is_file():
        raise BadRequest(f"there is no file {path}", hint=f"{CONFIG_VARIABLE} must name a file of settings")
    try:
        return TomlConfigSettingsSource(settings, path)
    except OSError as error:
        hint = "make it readable, or move it away"
        raise BadRequest(f"the settings in {path} cannot be read: {error.strerror}", hint=hint) from error
    except ValueError as error:
        hint = 'write one setting a line, like port = 8080 or data = "data"'
        raise BadRequest(f"{path} is not TOML: {error}", hint=hint) from error


def _sources() -> dict[str, str]:
    """Where each setting comes from that is not at its default."""
    file = _file(Settings)
    given = dict.fromkeys(file(), str(file.toml_file_path)) | dict.fromkeys(
        EnvSettingsSource(Settings)(), "environment"
    )
    names = {field.validation_alias: name for name, field in Settings.model_fields.items()}
    return {names.get(key, key): source for key, source in given.items()}


def _refusal(error: ValidationError, options: Mapping[str, object]) -> BadRequest:
    """The first mistake of several; the message names the option, variable or key, and never its value."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    flaw, name = first["msg"].removeprefix("Value error, "), "".join(map(str, first["loc"][:1]))
    source = _sources().get(name, "")
    if first["type"] == "extra_forbidden":
        hint = _suggestion(name, Settings.model_fields)
        return BadRequest(f"no setting is called {name!r}, which stands in {source}", hint=hint)
    if not name:
        return BadRequest(flaw)
    given = variable(name) if source == "environment" else f"{name} in {source}"
    place = f"--{name.replace('_', '-')}" if name in options else given
    return BadRequest(f"{place}: {flaw}", hint=Settings.model_fields[name].description or "")


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else "`gistream settings` lists all of them"


def _shown(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
