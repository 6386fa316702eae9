"""What several tests of the stream need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams import trouble
from streams.log import Log

from .running import Running


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Log(tmp_path / "log.db") as log:
        yield Running(tmp_path, log)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again at once."""
    monkeypatch.setattr(trouble, "PAUSES", (0.0,))
