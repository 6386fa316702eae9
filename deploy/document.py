"""The reference page, written from the code: `python -m deploy.document > docs/REFERENCE.md`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from index.metrics import METRICS
from query.limits import DEFAULT_MODE
from query.retrieve import MODES

from .cli import commands
from .exits import Exit
from .settings import Settings, variable


def page() -> str:
    """All of docs/REFERENCE.md; a test fails while the file differs from it."""
    return "\n".join(
        [
            "# Reference",
            "",
            "Written from the code by `python -m deploy.document`.",
            "",
            "## Commands",
            "",
            *_table(
                ("command", "what it does"),
                ((f"`gistream {name}`", _first_line(command.help)) for name, command in commands().items()),
            ),
            "Every command has `--help` with an example; those that print data have `--json`.",
            "",
            "## Exit codes",
            "",
            *_table(("code", "name", "meaning"), ((code.value, code.name, _meaning(code)) for code in Exit)),
            "## Modes",
            "",
            f"The default is `{DEFAULT_MODE}`.",
            "",
            *_table(
                ("mode", "how it reads"),
                ((f"`{name}`", _first_line(inspect.getdoc(type(mode)))) for name, mode in MODES.items()),
            ),
            "## Settings",
            "",
            "An option of a command comes before the environment, the environment before the file, and that before",
            "the default. The file is TOML, named by `GISTREAM_CONFIG` or `gistream.toml` in the working folder; there",
            "a setting has its plain name. A variable or key that nothing reads is an error.",
            "",
            *_table(
                ("setting", "variable", "default", "meaning"),
                (
                    (name, f"`{variable(name)}`", f"`{field.default}`", field.description)
                    for name, field in Settings.model_fields.items()
                ),
            ),
            "## Metrics",
            "",
            "`GET /metrics`, in the text format of Prometheus. None has a label for the namespace: there may be many.",
            "",
            *_table(
                ("metric", "unit", "meaning", "when it looks wrong"),
                ((f"`{name}`", metric.unit, metric.meaning, metric.remedy) for name, metric in METRICS.items()),
            ),
        ]
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines] + [""]


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def _meaning(code: Exit) -> str:
    """The sentence below a member in exits.py."""
    source = inspect.getsource(Exit)
    after = source.partition(f"    {code.name} = {code.value}\n")[2]
    return after.split('"""')[1] if after.lstrip().startswith('"""') else "All went well."


if __name__ == "__main__":
    print(page(), end="")
