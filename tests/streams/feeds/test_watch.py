"""Being told of changes, and doing without."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from watchfiles.main import FileChange

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


def test_where_the_system_cannot_tell_it_only_waits_and_tries_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Iterator[set[FileChange]]:
        raise OSError("OS file watch limit reached")
        yield set()

    watch, stop = Watch(tmp_path), Event()
    with caplog.at_level(logging.WARNING), monkeypatch.context() as patched:
        patched.setattr("streams.feeds.watch.watch", refuse)
        watch.wait(stop, 0.01)
    assert "it is scanned from time to time: OS file watch limit reached" in caplog.text
    watch.wait(stop, 60)
    (tmp_path / "a.txt").write_text("Anna.")
    watch.wait(stop, 60)
