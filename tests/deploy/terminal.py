"""A terminal for tests: run a command line in this process and look at its exit code and output."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import run


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal:
    """A data folder, no settings of the machine, and commands that end before the next one starts."""

    def __init__(self, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.data = data
        self._capsys = capsys
        monkeypatch.chdir(data.parent)
        monkeypatch.setenv("GISTREAM_DATA", str(data))
        monkeypatch.setenv("GISTREAM_EMBEDDING_DIMENSIONS", "32")

    def __call__(self, *arguments: str, stdin: str | bytes = "") -> Ended:
        self._capsys.readouterr()
        with _standard_input(stdin.encode() if isinstance(stdin, str) else stdin):
            code = run(arguments)
        out, err = self._capsys.readouterr()
        return Ended(int(code), out, err)

    def ok(self, *arguments: str, stdin: str | bytes = "") -> Ended:
        """A command that is expected to succeed."""
        ended = self(*arguments, stdin=stdin)
        assert ended.code == 0, ended
        return ended


@contextmanager
def _standard_input(written: bytes) -> Iterator[None]:
    """Put `written` where the process reads its standard input."""
    former = os.dup(0)
    try:
        with tempfile.TemporaryFile() as file:
            file.write(written)
            file.seek(0)
            os.dup2(file.fileno(), 0)
        yield
    finally:
        os.dup2(former, 0)
        os.close(former)


def lines(*events: dict[str, Any]) -> str:
    """Events as JSON lines."""
    return "".join(f"{json.dumps(event)}\n" for event in events)
