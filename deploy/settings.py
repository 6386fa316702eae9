"""Every setting in one frozen value, read from environment variables and a TOML file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from index.errors import BadRequest

PREFIX: Final = "GISTREAM_"
CONFIG_VARIABLE: Final = "GISTREAM_CONFIG"
"""Names the TOML file; without it gistream.toml of the working folder is read, where there is one."""
CONFIG_FILE: Final = "gistream.toml"
ENVIRONMENT: Final = "environment"
"""The source of a setting that a variable gives."""


class Settings(BaseSettings):
    """What an operator decides. Sizes, times and counts carry their unit in the description."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        str_strip_whitespace=True,
        populate_by_name=True,
        loc_by_alias=False,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    data: Annotated[Path, AfterValidator(Path.expanduser)] = Field(
        default=Path("data"), description="Folder of the log and of every namespace; made where it is missing."
    )
    host: str = Field(
        default="127.0.0.1", min_length=1, description="Address the service listens on; 0.0.0.0 is every interface."
    )
    port: int = Field(default=8080, ge=0, le=65535, description="Port the service listens on; 0 takes any free one.")

    chunker: Literal["content", "whole"] = Field(
        default="content", description="How a document is cut: at boundaries that its content defines, or not at all."
    )
    chunk_least: int = Field(
        default=50, ge=1, le=10_000, description="Fewest words of a passage; at most a third of chunk_most."
    )
    chunk_most: int = Field(default=180, ge=3, le=30_000, description="Most words of a passage.")
    extractor: str = Field(
        default="rules",
        pattern=r"^(rules|recorded:.+)$",
        description="What reads a passage: rules, or recorded:NAME to replay a file.",
    )
    embedder: Literal["hashing", "openai"] = Field(
        default="hashing",
        description="What makes vectors: hashing needs no model; openai asks an endpoint that speaks its protocol.",
    )
    embedding_base_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="Address of the embedding endpoint, ending in /v1; unset is the client's default.",
    )
    embedding_model: str = Field(
        default="text-embedding-3-small", min_length=1, description="Model the embedding endpoint is asked for."
    )
    embedding_dimensions: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Length of a vector; unset is 384 for hashing, and what the model gives for openai.",
    )
    openai_api_key: SecretStr | None = Field(
        default=None,
        validation_alias="OPENAI_API_KEY",
        description="Key for the endpoints; those on this machine need none.",
    )
    alias_edges: bool = Field(
        default=True, description="Link entities whose names mean the same; only embedders that declare a threshold do."
    )

    batch_documents: int = Field(default=256, ge=1, le=100_000, description="Most documents in one commit.")
    checkpoint_seconds: float = Field(
        default=5.0, gt=0, le=3600, description="Seconds between two moments at which commits are fsynced."
    )
    retention_hours: float = Field(
        default=24.0, ge=0, le=24 * 3650, description="Hours an older snapshot stays readable."
    )

    max_document_bytes: int = Field(
        default=16 * 2**20, ge=1, le=2**30, description="Largest title and text of a document, in bytes."
    )
    max_metadata_bytes: int = Field(
        default=64 * 2**10, ge=2, le=2**24, description="Largest metadata of a document, in bytes of JSON."
    )
    wait_timeout: float = Field(
        default=30.0, gt=0, le=3600, description="Most seconds a read waits for the write it names to become visible."
    )

    @model_validator(mode="after")
    def _passages_can_be_cut(self) -> Self:
        if self.chunk_least > self.chunk_most // 3:
            raise ValueError(f"chunk_least ({self.chunk_least}) is more than a third of chunk_most ({self.chunk_most})")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is given in the program, then the environment, then the file."""
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
    given: dict[str, Any] = {name: value for name, value in (options or {}).items() if value is not None}
    _refuse_unread_variables()
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
    """The environment variable of the setting `name`: its own where it is everybody's, else GISTREAM_ and its name."""
    return str(Settings.model_fields[name].validation_alias or PREFIX + name.upper())


def _refuse_unread_variables() -> None:
    known = [variable(name) for name in Settings.model_fields]
    for found in os.environ:
        if found.startswith(PREFIX) and found not in known and found != CONFIG_VARIABLE:
            raise BadRequest(f"no setting reads the environment variable {found}", hint=_suggestion(found, known))


def _file(settings: type[BaseSettings]) -> TomlConfigSettingsSource:
    """The file of settings, empty where there is none and none was named. Raises BadRequest where it cannot be read."""
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
    """Where each setting comes from that is not at its default: the environment, or the path of the file."""
    file = _file(Settings)
    given = dict.fromkeys(file(), str(file.toml_file_path)) | dict.fromkeys(EnvSettingsSource(Settings)(), ENVIRONMENT)
    names = {field.validation_alias: name for name, field in Settings.model_fields.items()}
    return {names.get(key, key): source for key, source in given.items()}


def _refusal(error: ValidationError, options: Mapping[str, object]) -> BadRequest:
    """The first mistake of several, in one line that names the option, variable or key, and never its value."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    flaw, name = first["msg"].removeprefix("Value error, "), "".join(map(str, first["loc"][:1]))
    source = _sources().get(name, "")
    if first["type"] == "extra_forbidden":
        hint = _suggestion(name, Settings.model_fields)
        return BadRequest(f"no setting is called {name!r}, which stands in {source}", hint=hint)
    if not name:
        return BadRequest(flaw)
    place = variable(name) if source == ENVIRONMENT else f"{name} in {source}"
    if name in options:
        place = f"--{name.replace('_', '-')}"
    return BadRequest(f"{place}: {flaw}", hint=Settings.model_fields[name].description or "")


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else "`gistream settings` lists all of them"


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
    return str(value)
