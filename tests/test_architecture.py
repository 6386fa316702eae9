"""The folders are the architecture: who may import whom, what a module says of itself, and what nobody mentions."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "index": set[str](),
    "streams": {"index"},
    "query": {"index"},
    "deploy": {"index", "streams", "query"},
}
MODULES = sorted(path.relative_to(ROOT) for component in MAY_IMPORT for path in (ROOT / component).rglob("*.py"))
NOT_OURS = {ROOT / "build", ROOT / "data"}
LARGEST_TEXT = 2**20
"""Bytes; what is larger is data."""

# Written in pieces, so that this file keeps its own rule.
MACHINE_PATH = re.compile(r"(?<![\w.$~}/-])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me|tm" + r"p|Us" + r"ers)/\w")
REGISTRY = re.compile(
    r"\b(?:py"
    + r"pi\.org|files\.python"
    + r"hosted|npm"
    + r"js\.|crates\."
    + r"io|proxy\.go"
    + r"lang|deb\.deb"
    + r"ian)"
)


def tree(module: Path) -> ast.Module:
    return ast.parse((ROOT / module).read_text(), filename=str(module))


def imports(module: Path) -> Iterator[tuple[int, str]]:
    """(dots, dotted name) of every import of a module, those inside of functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.level, f"{node.module or ''}.{alias.name}".lstrip(".")) for alias in node.names)


def our_texts() -> Iterator[Path]:
    for folder, below, files in os.walk(ROOT):
        below[:] = [
            name
            for name in below
            if name == ".ci" or not (name.startswith((".", "__")) or Path(folder, name) in NOT_OURS)
        ]
        for path in (Path(folder, name) for name in files):
            if path.is_file() and path.stat().st_size <= LARGEST_TEXT:
                yield path


def test_there_is_something_to_check() -> None:
    assert {path.parts[0] for path in MODULES} == set(MAY_IMPORT)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_follow_the_arrows(module: Path) -> None:
    home, depth = module.parts[0], len(module.parts) - 1
    for dots, name in imports(module):
        top = name.partition(".")[0]
        assert dots <= depth, f"{module} imports {'.' * dots}{name}: a dot stays inside of {home}"
        if dots == 0:
            assert top != home, f"{module} imports {name}: inside of {home} imports are relative"
            assert top != "tests", f"{module} imports {name}: nothing that runs depends on tests"
            assert top not in MAY_IMPORT.keys() - MAY_IMPORT[home], f"{module} imports {name}: {home} may not"
            assert name not in MAY_IMPORT, f"{module} imports all of {name}: name the module"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_opens_with_one_sentence(module: Path) -> None:
    text = ast.get_docstring(tree(module)) or ""
    caption, _, rest = text.partition("\n")
    assert re.fullmatch(r"\S.{10,}[.?]", caption), f"{module} opens with {caption!r}"
    assert not rest or rest.startswith("\n"), f"the caption of {module} does not end with its first line"


@pytest.mark.parametrize("module", [path for path in MODULES if path.name == "__init__.py"], ids=str)
def test_a_package_holds_nothing_but_its_caption(module: Path) -> None:
    assert len(tree(module).body) == 1, f"{module} has code; names are imported from the modules that define them"


def test_every_folder_of_modules_is_a_package_and_every_component_is_typed() -> None:
    folders = {path.parent for path in MODULES}
    assert [str(folder) for folder in sorted(folders) if not (ROOT / folder / "__init__.py").is_file()] == []
    assert [component for component in MAY_IMPORT if not (ROOT / component / "py.typed").is_file()] == []


def test_the_project_speaks_only_of_itself() -> None:
    found = []
    for path in our_texts():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line) or REGISTRY.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == [], "paths of one machine, or hosts of package registries:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("line", "is_bad"),
    [
        ("cache: /ho" + "me/anna/cache", True),
        ("open('/tm" + "p/x')", True),
        ("COPY . $HOME/ho" + "me/x", False),
        ("see /v1/namespaces/wo" + "rk/x", False),
        ("emptyDir at /tm" + "p", False),
    ],
)
def test_a_machine_path_is_recognised(line: str, is_bad: bool) -> None:
    assert bool(MACHINE_PATH.search(line)) == is_bad
