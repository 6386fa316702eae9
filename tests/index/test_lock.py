"""Tests of the courtesy lock: one holder at a time, named to whoever comes second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from index.errors import WriterBusy
from index.lock import WriterLock

HOLD = """
import sys
from pathlib import Path
from index.lock import WriterLock
WriterLock(Path(sys.argv[1])).acquire(take_over=False)
print("held", flush=True)
sys.stdin.read()
"""
ROOT = Path(__file__).resolve().parents[2]


def test_the_holder_is_named_until_it_dies(tmp_path: Path) -> None:
    path = tmp_path / "writer.lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        second = WriterLock(path)
        with pytest.raises(WriterBusy, match=f"process {process.pid}"):
            second.acquire(take_over=False)
        second.acquire(take_over=True)
        process.kill()
    second.acquire(take_over=False)
    assert path.read_text() == f"{os.getpid()}\n"
    second.release()


def test_a_lock_can_be_taken_again_after_its_release(tmp_path: Path) -> None:
    first, second = WriterLock(tmp_path / "lock"), WriterLock(tmp_path / "lock")
    for holder in (first, second, first):
        holder.acquire(take_over=False)
        holder.release()
        holder.release()


def test_who_passed_a_held_lock_by_does_not_release_it(tmp_path: Path) -> None:
    first, second, third = (WriterLock(tmp_path / "lock") for _ in range(3))
    first.acquire(take_over=False)
    second.acquire(take_over=True)
    second.release()
    with pytest.raises(WriterBusy):
        third.acquire(take_over=False)
    first.release()
