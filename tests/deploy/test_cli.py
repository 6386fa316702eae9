"""The command as a whole: its help, how quickly it starts, and what its exit codes mean."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperOption

from deploy.cli import commands
from deploy.commands import status
from deploy.exits import Exit, exit_of
from deploy.settings import Settings, variable
from index import errors
from index.errors import GistreamError
from query.retrieve import MODES

from .terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
VERBS = "serve worker ingest search delete status rebuild verify settings eval demo".split()
HEAVY = ("lancedb", "lance", "numba", "scipy", "pyarrow", "numpy", "pydantic", "fastapi", "openai")


def options() -> Iterator[tuple[str, TyperOption]]:
    for name, command in commands().items():
        yield from ((name, option) for option in command.params if isinstance(option, TyperOption))


def kinds(kind: type[GistreamError] = GistreamError) -> Iterator[type[GistreamError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from kinds(below)


def test_the_commands_are_these() -> None:
    snapshots = ["snapshots list", "snapshots diff"]
    letters = [f"dead-letters {verb}" for verb in ("list", "show", "replay", "drop")]
    feeds = ["feed add", "feed list", "feed run", "feed remove"]
    topics = ["topics create", "topics check", "topics describe"]
    assert list(commands()) == [*VERBS, *snapshots, *feeds, *letters, *topics]


@pytest.mark.parametrize("name", [*commands()])
def test_every_command_says_what_it_does_and_gives_an_example(name: str, gistream: Terminal) -> None:
    ended = gistream.ok(*name.split(), "--help")
    assert (
        f"Example: gistream {name}" in " ".join(ended.out.split())
        or "GISTREAM_PORT=9000 gistream settings" in ended.out
    )
    command = commands()[name]
    assert all(getattr(parameter, "help", None) for parameter in command.params), name


def test_an_option_that_is_a_setting_names_its_variable() -> None:
    named = [option for _, option in options() if option.name in Settings.model_fields]
    assert {option.name for option in named} >= {"data", "host", "port"}
    for command, option in options():
        # The embedder and extractor of `eval` are those of its question set, and its data folder is not the server's.
        if option.name in Settings.model_fields and command != "eval":
            assert f"(env: {variable(option.name)})" in (option.help or ""), (command, option.name)


def test_the_modes_that_search_offers_are_those_there_are() -> None:
    [mode] = [option for name, option in options() if name == "search" and option.name == "mode"]
    assert (mode.help or "").rstrip(".").replace(" or ", ", ").split(", ") == list(MODES)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from deploy.cli import run; run(['--help']);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "dead-letters" in ended.stdout
    assert ended.stderr.strip() == "[]"


@pytest.mark.parametrize("kind", [*kinds()])
def test_every_error_of_ours_ends_in_a_code_that_is_no_defect(kind: type[GistreamError]) -> None:
    assert exit_of(kind("x")) not in (Exit.OK, Exit.DEFECT)


def test_a_kind_of_error_has_the_code_of_its_parent_unless_it_has_its_own() -> None:
    ends = {kind.__name__: exit_of(kind("x")).name for kind in kinds(errors.StoreError)}
    assert ends == dict.fromkeys(ends, "DAMAGED") | {"SnapshotGone": "NOT_FOUND"}


def test_what_is_no_error_of_ours_is_a_defect_with_its_traceback(
    gistream: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError("by hand")

    monkeypatch.setattr(status, "configured", broken)
    ended = gistream("status")
    assert ended.code == Exit.DEFECT
    assert "Traceback" in ended.err and "by hand" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), Exit.USAGE, ""),
        (("nonsense",), Exit.USAGE, "nonsense"),
        (("search", "notes"), Exit.USAGE, "QUESTION"),
        (("search", "nowhere", "what?"), Exit.NOT_FOUND, "there is no namespace nowhere"),
        (("search", "nowhere", "what?", "--wait-for", "soon"), Exit.USAGE, "'soon' is no token"),
        (("delete", "nowhere", "a"), Exit.NOT_FOUND, "there is no namespace nowhere"),
        (("delete", "../up", "a"), Exit.NOT_FOUND, "'../up' is no namespace"),
        (("search", "nowhere", "what?", "--as-of", "soon"), Exit.USAGE, "'soon' names no snapshot"),
        (("search", "nowhere", "what?", "--until", "soon"), Exit.USAGE, "'soon' is no moment"),
        (("search", "nowhere", "what?", "--where", "=x"), Exit.USAGE, "'=x' is no condition"),
        (("search", "nowhere", "what?", "--as-of", "1", "--wait-for", "log:1"), Exit.USAGE, "asks what was"),
        (("search", "nowhere", "what?", "--max-staleness", "1"), Exit.USAGE, "there is no log"),
        (("snapshots", "diff", "1", "2"), Exit.USAGE, "there are 0 namespaces"),
        (("snapshots", "diff", "1", "2", "nowhere"), Exit.NOT_FOUND, "there is no namespace nowhere"),
        (("snapshots", "nowhere"), Exit.NOT_FOUND, "there is no namespace nowhere"),
        (("verify", "nowhere"), Exit.NOT_FOUND, "there is no namespace nowhere"),
        (("rebuild", "nowhere"), Exit.NOT_FOUND, "there is no namespace nowhere"),
        (("ingest", "notes", "missing.jsonl"), Exit.NOT_FOUND, "missing.jsonl"),
        (("ingest", "No Name", "-"), Exit.NOT_FOUND, "'No Name' is no namespace"),
        (("dead-letters", "show", "7"), Exit.NOT_FOUND, "no dead letter 7"),
        (("dead-letters", "replay", "7"), Exit.NOT_FOUND, "no dead letter 7"),
        (("serve", "--port", "99999"), Exit.USAGE, "65535"),
        (("eval", "--kit", "missing"), Exit.NOT_FOUND, "missing"),
        (("eval", "--kit", "missing", "--mode", "wishful"), Exit.USAGE, "there is no mode 'wishful'"),
    ],
)
def test_a_mistake_is_one_line_and_a_code(
    arguments: tuple[str, ...], code: Exit, said: str, gistream: Terminal
) -> None:
    ended = gistream(*arguments)
    assert (ended.code, "Traceback" in ended.err) == (code, False), ended
    assert said in ended.err
    if code is not Exit.USAGE:
        assert ended.err.count("\n") == 1
        assert ended.err.startswith("gistream: ")


def test_a_misspelt_variable_is_named(gistream: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTREAM_PROT", "1")
    ended = gistream("status")
    assert ended.code == Exit.USAGE
    assert "GISTREAM_PROT" in ended.err


def test_settings_say_where_a_value_comes_from_and_hide_secrets(
    gistream: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    found = {setting["variable"]: setting for setting in gistream.ok("settings", "--json").json["settings"]}
    assert len(found) == len(Settings.model_fields)
    assert found["GISTREAM_DATA"]["source"] == "environment"
    port = found["GISTREAM_PORT"]
    assert (port["name"], port["value"], port["source"]) == ("port", "8080", "default")
    assert "very-secret" not in json.dumps(found) + gistream.ok("settings").out
