"""Settings: every source in its order, every mistake named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from deploy.settings import PREFIX, Settings, explain, load, variable
from index.errors import BadRequest
from streams.chunk import CONTENT
from streams.events import DEFAULT_LIMITS

SECRET = "sk-0123456789"
DEFAULTS = Settings.model_construct()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and no setting of the machine that runs the tests."""
    for name in [name for name in os.environ if name.startswith(PREFIX) or name == "OPENAI_API_KEY"]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def toml(folder: Path) -> Path:
    return folder / "gistream.toml"


def test_without_any_source_the_defaults_hold() -> None:
    assert load() == DEFAULTS
    rows = explain()
    assert [row.name for row in rows] == list(Settings.model_fields)
    assert all(row.source == "default" and row.value == row.default for row in rows)


def test_the_defaults_are_those_of_the_components() -> None:
    assert (DEFAULTS.chunk_least, DEFAULTS.chunk_most) == (CONTENT.least, CONTENT.most)
    assert DEFAULTS.max_document_bytes == DEFAULT_LIMITS.document_bytes
    assert DEFAULTS.max_metadata_bytes == DEFAULT_LIMITS.metadata_bytes


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load().port = 1


def test_an_option_beats_the_environment_beats_the_file_beats_the_default(
    toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml.write_text('port = 1\nhost = "file"\nchunk_most = 200\nopenai_api_key = "file"\n')
    monkeypatch.setenv("GISTREAM_PORT", "2")
    monkeypatch.setenv("GISTREAM_HOST", "environment")
    monkeypatch.setenv("OPENAI_API_KEY", " environment\n")
    settings = load({"port": 3, "host": None})
    assert (settings.port, settings.host, settings.chunk_most, settings.chunk_least) == (3, "environment", 200, 50)
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "environment"
    rows = {row.name: row for row in explain()}
    assert (rows["port"].value, rows["port"].default, rows["port"].source) == ("2", "8080", "environment")
    assert rows["chunk_most"].source == "gistream.toml"
    assert rows["openai_api_key"].source == "environment"
    assert rows["chunk_least"].source == "default"


def test_the_file_may_be_elsewhere(toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toml.write_text("port = 1\n")
    other = toml.with_name("other.toml")
    other.write_text(f'port = 2\nalias_edges = false\ndata = "~/index"\nopenai_api_key = "{SECRET}"\n')
    monkeypatch.setenv("GISTREAM_CONFIG", str(other))
    settings = load()
    assert settings.port == 2
    assert settings.alias_edges is False
    assert settings.data == Path.home() / "index"
    rows = {row.name: row for row in explain()}
    assert {rows[name].source for name in ("port", "openai_api_key")} == {str(other)}
    assert rows["alias_edges"].value == "false"


def test_an_empty_variable_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GISTREAM_PORT", "GISTREAM_EMBEDDING_BASE_URL", "OPENAI_API_KEY", "GISTREAM_CONFIG"):
        monkeypatch.setenv(name, "")
    assert load() == DEFAULTS
    assert {row.source for row in explain()} == {"default"}


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_and_has_a_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = {"extractor": "recorded:gpt", "embedding_base_url": "http://localhost/v1", "data": "elsewhere"}
    written |= {"former_embedding_base_url": "http://localhost/v1", "rebuild_on_change": "false"}
    model = {"extractor_base_url": "http://localhost/v1", "extractor_strategy": "staged", "extractor_most_tokens": "77"}
    special = {
        "chunker": "whole",
        "embedder": "openai",
        "alias_edges": "false",
        "run_feeds": "false",
        "sentences": "false",
        "chunk_most": "300",
        "kafka_bootstrap": "broker-1:9092,broker-2:9092",
        "kafka_security": "SASL_SSL",
        "kafka_sasl_mechanism": "SCRAM-SHA-256",
    }
    monkeypatch.setenv(variable(name), (written | model | special).get(name, "7"))
    if name == "budget_usd":
        monkeypatch.setenv("GISTREAM_EXTRACTOR_PRICE_INPUT", "1")
    row = {row.name: row for row in explain()}[name]
    assert row.description.endswith(".")
    assert row.variable == variable(name)
    assert row.source == "environment"
    assert getattr(load(), name) != getattr(DEFAULTS, name)


@pytest.mark.parametrize(
    ("environment", "file", "reason"),
    [
        ({"GISTREAM_PROT": "1"}, "", r"variable GISTREAM_PROT\. did you mean GISTREAM_PORT\?"),
        ({"GISTREAM_ZOOKEEPER": "1"}, "", r"GISTREAM_ZOOKEEPER\. `gistream settings` lists"),
        ({"GISTREAM_OPENAI_API_KEY": SECRET}, "", r"did you mean OPENAI_API_KEY\?"),
        ({"GISTREAM_PORT": "http"}, "", r"GISTREAM_PORT: Input should be a valid integer"),
        ({"GISTREAM_PORT": "65536"}, "port = 1", r"GISTREAM_PORT: Input should be less than or equal to 65535"),
        ({"GISTREAM_EXTRACTOR": "magic"}, "", r"GISTREAM_EXTRACTOR: .*or recorded:NAME"),
        ({"GISTREAM_CHUNK_LEAST": "100"}, "", r"chunk_least \(100\) is more than a third of chunk_most \(180\)"),
        ({"GISTREAM_KAFKA_BOOTSTRAP": "broker"}, "", r"GISTREAM_KAFKA_BOOTSTRAP: .*host:port of some Kafka brokers"),
        ({"GISTREAM_KAFKA_PREFIX": "a b"}, "", r"GISTREAM_KAFKA_PREFIX: "),
        ({"GISTREAM_CONFIG": "nowhere.toml"}, "", r"no file nowhere\.toml\. GISTREAM_CONFIG"),
        ({"GISTREAM_CONFIG": "."}, "", r"there is no file"),
        ({}, "prot = 1", r"'prot', which stands in gistream\.toml\. did you mean port\?"),
        ({}, "[server]\nport = 1", r"'server', which stands in"),
        ({}, "port = 1\nport = 2", r"gistream\.toml is not TOML"),
        ({}, "port = 1.5", r"port in gistream\.toml: Input should be a valid integer"),
        ({}, f'openai_api_key = ["{SECRET}"]', r"openai_api_key in gistream\.toml: "),
    ],
)
def test_a_mistake_is_named(
    environment: dict[str, str], file: str, reason: str, toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if file:
        toml.write_text(file)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadRequest, match=reason) as caught:
        load()
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(BadRequest, match=reason):
        explain()


def test_a_mistake_in_an_option_names_the_option() -> None:
    with pytest.raises(BadRequest, match=r"^--embedding-model: String should have at least 1 character"):
        load({"embedding_model": ""})


def test_a_file_that_cannot_be_read_is_named(toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    toml.write_text("port = 1\n")
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(BadRequest, match=r"gistream\.toml cannot be read: Permission denied"):
        load()


def test_a_secret_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    settings = load()
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == SECRET
    assert SECRET not in repr(settings) + json.dumps(explain()) + settings.model_dump_json()


def test_variables_of_others_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PORT", "HOST", "GIST"):
        monkeypatch.setenv(name, "1")
    assert load() == DEFAULTS
