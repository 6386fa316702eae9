"""Settings: every source in its order, every mistake named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.settings import Settings, explain, load, variable
from index.errors import BadRequest
from streams.chunk import CONTENT
from streams.events import DEFAULT_LIMITS

SECRET = "sk-0123456789"


def test_without_any_source_the_defaults_hold(tmp_path: Path) -> None:
    assert load({}, tmp_path) == Settings()
    assert {row.source for row in explain({}, tmp_path)} == {"default"}


def test_the_defaults_are_those_of_the_components() -> None:
    settings = Settings()
    assert (settings.chunk_least, settings.chunk_most) == (CONTENT.least, CONTENT.most)
    assert settings.max_document_bytes == DEFAULT_LIMITS.document_bytes
    assert settings.max_metadata_bytes == DEFAULT_LIMITS.metadata_bytes


def test_an_option_beats_the_environment_beats_the_file_beats_the_default(tmp_path: Path) -> None:
    (tmp_path / "gistream.toml").write_text('port = 1\nhost = "file"\nchunk_most = 200\n')
    environment = {"GISTREAM_PORT": "2", "GISTREAM_HOST": "environment"}
    settings = load(environment, tmp_path, {"port": 3, "host": None})
    assert (settings.port, settings.host, settings.chunk_most, settings.chunk_least) == (3, "environment", 200, 50)
    sources = {row.name: row.source for row in explain(environment, tmp_path)}
    assert sources["port"] == "environment"
    assert sources["chunk_most"] == str(tmp_path / "gistream.toml")
    assert sources["chunk_least"] == "default"


def test_the_file_may_be_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "gistream.toml").write_text("port = 1\n")
    other = tmp_path / "other.toml"
    other.write_text('port = 2\nalias_edges = false\ndata = "~/index"\n')
    settings = load({"GISTREAM_CONFIG": str(other)}, tmp_path)
    assert settings.port == 2
    assert settings.alias_edges is False
    assert settings.data == Path.home() / "index"


def test_an_empty_variable_is_not_given(tmp_path: Path) -> None:
    assert load({"GISTREAM_PORT": "", "GISTREAM_EMBEDDING_BASE_URL": " ", "OPENAI_API_KEY": ""}, tmp_path) == Settings()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_and_has_a_variable(name: str, tmp_path: Path) -> None:
    row = {row.name: row for row in explain({}, tmp_path)}[name]
    assert row.description.endswith(".")
    assert row.variable == variable(name)
    written = {"extractor": "recorded:gpt", "embedding_base_url": "http://localhost/v1", "data": "elsewhere"}
    special = {"chunker": "whole", "embedder": "openai", "alias_edges": "false", "chunk_most": "300"}
    value = (written | special).get(name, "7")
    loaded = getattr(load({variable(name): value}, tmp_path), name)
    assert loaded != getattr(Settings(), name)


@pytest.mark.parametrize(
    ("environment", "file", "reason"),
    [
        ({"GISTREAM_PROT": "1"}, "", r"variable GISTREAM_PROT\. did you mean GISTREAM_PORT\?"),
        ({"GISTREAM_KAFKA_TOPIC": "1"}, "", r"GISTREAM_KAFKA_TOPIC\. `gistream settings` lists"),
        ({"GISTREAM_OPENAI_API_KEY": SECRET}, "", r"did you mean OPENAI_API_KEY\?"),
        ({"GISTREAM_PORT": "http"}, "", r"GISTREAM_PORT: Input should be a valid integer"),
        ({"GISTREAM_PORT": "65536"}, "", r"GISTREAM_PORT: Input should be less than or equal to 65535"),
        ({"GISTREAM_EXTRACTOR": "magic"}, "", r"GISTREAM_EXTRACTOR: .*rules, or recorded:NAME"),
        ({"GISTREAM_CHUNK_LEAST": "100"}, "", r"chunk_least \(100\) is more than a third of chunk_most \(180\)"),
        ({"GISTREAM_CONFIG": "nowhere.toml"}, "", r"nowhere\.toml cannot be read: No such file.*GISTREAM_CONFIG"),
        ({"GISTREAM_CONFIG": "."}, "", r"cannot be read: Is a directory"),
        ({}, "prot = 1", r"'prot', which stands in .*gistream\.toml\. did you mean port\?"),
        ({}, "[server]\nport = 1", r"'server', which stands in"),
        ({}, "port = 1\nport = 2", r"gistream\.toml is not TOML"),
        ({}, "port = 1.5", r"port in .*gistream\.toml: Input should be a valid integer"),
        ({}, f'openai_api_key = ["{SECRET}"]', r"openai_api_key in .*gistream\.toml: "),
    ],
)
def test_a_mistake_is_named(environment: dict[str, str], file: str, reason: str, tmp_path: Path) -> None:
    if file:
        (tmp_path / "gistream.toml").write_text(file)
    with pytest.raises(BadRequest, match=reason) as caught:
        load(environment, tmp_path)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(BadRequest, match=reason):
        explain(environment, tmp_path)


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    environment = {"OPENAI_API_KEY": SECRET}
    settings = load(environment, tmp_path)
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == SECRET
    assert SECRET not in repr(settings) + json.dumps(explain(environment, tmp_path)) + settings.model_dump_json()


def test_variables_of_others_do_not_matter(tmp_path: Path) -> None:
    assert load({"PORT": "1", "HOST": "elsewhere", "GIST": "2"}, tmp_path) == Settings()
