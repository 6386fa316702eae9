"""The documentation cannot rot: every command, setting and metric is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.cli import commands
from deploy.document import page
from deploy.exits import Exit
from deploy.settings import Settings, variable
from index.metrics import METRICS
from query.retrieve import MODES

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def documentation() -> str:
    """README.md and everything below docs/, as one text."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return "\n".join(page.read_text() for page in pages if page.exists())


@pytest.mark.parametrize("name", [*commands()])
def test_every_command_is_documented(name: str, documentation: str) -> None:
    assert f"gistream {name}" in documentation


@pytest.mark.parametrize("name", [*Settings.model_fields])
def test_every_setting_is_documented(name: str, documentation: str) -> None:
    assert f"`{variable(name)}`" in documentation


@pytest.mark.parametrize("name", [*METRICS])
def test_every_metric_is_documented(name: str, documentation: str) -> None:
    assert f"`{name}`" in documentation


@pytest.mark.parametrize("mode", [*MODES])
def test_every_mode_is_documented(mode: str, documentation: str) -> None:
    assert f"`{mode}`" in documentation


@pytest.mark.parametrize("code", [*Exit])
def test_every_exit_code_is_documented(code: Exit, documentation: str) -> None:
    assert f"| {code.value} |" in documentation


def test_the_reference_page_is_that_of_the_code() -> None:
    assert (ROOT / "docs" / "REFERENCE.md").read_text() == page(), "run python -m deploy.document > docs/REFERENCE.md"


@pytest.mark.parametrize("folder", ["index", "streams", "query", "deploy"])
def test_every_module_is_on_the_plan(folder: str) -> None:
    plan = (ROOT / "ARCHITECTURE.md").read_text()
    modules = (path for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py")
    missing = [str(path.relative_to(ROOT)) for path in modules if f"{path.name}`" not in plan]
    assert not [name for name in missing if not name.startswith("deploy/commands/")]
