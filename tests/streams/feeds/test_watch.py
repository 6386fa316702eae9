"""Being told of changes, and doing without."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from threading import Event

import pytest

from streams.feeds.watch import Watch


def test_a_change_ends_the_waiting(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    watch, stop = Watch(tmp_path), Event()
    watch.wait(stop, 60)
    (tmp_path / "sub" / "a.txt").write_text("Anna.")
    started = time.monotonic()
    watch.wait(stop, 60)
    assert time.monotonic() - started < 30


def test_waiting_ends_by_itself_and_when_told_to(tmp_path: Path) -> None:
    watch, stop = Watch(tmp_path), Event()
    watch.wait(stop, 60)
    watch.wait(stop, 0.01)
    threading.Timer(0.1, stop.set).start()
    started = time.monotonic()
    watch.wait(stop, 60)
    assert time.monotonic() - started < 30


def test_without_being_told_it_only_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "nowhere"
    watch, stop = Watch(root), Event()
    with caplog.at_level(logging.WARNING):
        watch.wait(stop, 0.01)
    assert "it is scanned from time to time" in caplog.text
    root.mkdir()
    watch.wait(stop, 60)
    (root / "a.txt").write_text("Anna.")
    watch.wait(stop, 60)
