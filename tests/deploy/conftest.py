"""What the tests of the command line may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from .terminal import Terminal


@pytest.fixture
def gistream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path / "data", monkeypatch, capsys)
