"""Every setting in one frozen value, read from environment variables and a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from index.errors import BadRequest

PREFIX: Final = "GISTREAM_"
CONFIG_VARIABLE: Final = "GISTREAM_CONFIG"
"""Names the TOML file; without it gistream.toml of the working folder is read, where there is one."""
CONFIG_FILE: Final = "gistream.toml"

_FOREIGN_VARIABLES: Final = {"openai_api_key": "OPENAI_API_KEY"}
"""Settings whose variable is everybody's; the others are GISTREAM_ and their name in capitals."""


class Settings(BaseModel):
    """What an operator decides. Sizes, times and counts carry their unit in the description."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

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
        default=None, description="Key for the endpoints; those on this machine need none."
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
    exact_max: int = Field(
        default=200_000, ge=0, description="Most rows whose vectors are searched exactly; above it an index helps."
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


class Setting(NamedTuple):
    """One setting as it stands, ready to be printed; a secret shows as asterisks."""

    name: str
    variable: str
    default: str
    value: str
    source: str
    """`default`, `environment`, `command line`, or the path of the file."""
    description: str


class _Given(NamedTuple):
    value: object
    source: str
    place: str
    """What a message calls it."""


def load(
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """The settings that hold: `options` of a command before the environment, before the file, before the defaults.

    `environment` is the process's own by default, `folder` the working folder. An option that is None and a variable
    that is empty count as not given. Raises BadRequest for a value out of bounds, for a file that cannot be read, and
    for a variable or key that nothing reads: a misspelt setting must not pass in silence.
    """
    return _checked(_given(environment, folder, options))


def explain(environment: Mapping[str, str] | None = None, folder: Path | None = None) -> list[Setting]:
    """Every setting with its value and where that came from, in the order of `Settings`. Raises as `load` does."""
    given = _given(environment, folder, None)
    settings = _checked(given)
    return [
        Setting(
            name,
            variable(name),
            _shown(field.default),
            _shown(getattr(settings, name)),
            given[name].source if name in given else "default",
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]


def variable(name: str) -> str:
    """The environment variable of the setting `name`."""
    return _FOREIGN_VARIABLES.get(name, PREFIX + name.upper())


def _given(
    environment: Mapping[str, str] | None, folder: Path | None, options: Mapping[str, object] | None
) -> dict[str, _Given]:
    environment = os.environ if environment is None else environment
    given = _from_file(environment.get(CONFIG_VARIABLE, ""), folder or Path())
    given |= _from_environment(environment)
    for name, value in (options or {}).items():
        if value is not None:
            given[name] = _Given(value, "command line", f"--{name.replace('_', '-')}")
    return given


def _from_environment(environment: Mapping[str, str]) -> dict[str, _Given]:
    names = {variable(name): name for name in Settings.model_fields}
    for found in environment:
        if found.startswith(PREFIX) and found not in names and found != CONFIG_VARIABLE:
            raise BadRequest(f"no setting reads the environment variable {found}", hint=_suggestion(found, names))
    return {
        name: _Given(value, "environment", found)
        for found, name in names.items()
        if (value := environment.get(found, "").strip())
    }


def _from_file(named: str, folder: Path) -> dict[str, _Given]:
    path = Path(named).expanduser() if named else folder / CONFIG_FILE
    if not named and not path.exists():
        return {}
    try:
        with path.open("rb") as file:
            content: dict[str, Any] = tomllib.load(file)
    except OSError as error:
        hint = f"{CONFIG_VARIABLE} must name a readable file" if named else "make it readable, or move it away"
        raise BadRequest(f"the settings in {path} cannot be read: {error.strerror}", hint=hint) from error
    except ValueError as error:
        raise BadRequest(
            f"{path} is not TOML: {error}", hint='write one setting a line, like port = 8080 or data = "data"'
        ) from error
    for key in content:
        if key not in Settings.model_fields:
            raise BadRequest(
                f"no setting is called {key!r}, which stands in {path}", hint=_suggestion(key, Settings.model_fields)
            )
    return {key: _Given(value, str(path), f"{key} in {path}") for key, value in content.items()}


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else "`gistream settings` lists all of them"


def _checked(given: Mapping[str, _Given]) -> Settings:
    try:
        return Settings.model_validate({name: one.value for name, one in given.items()})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        flaw = first["msg"].removeprefix("Value error, ")
        name = str(first["loc"][0]) if first["loc"] else ""
        what = f"{given[name].place}: {flaw}" if name in given else flaw
        raise BadRequest(what, hint=Settings.model_fields[name].description or "" if name else "") from None


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
    return str(value)
