"""Tests of locks: one holder at a time, named to whoever comes second, and no one held up by what is gone."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from index.errors import WriterBusy
from index.lock import WriterLock, alone, stands

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


def test_one_after_the_other_has_a_lock_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "open.lock"
    inside, most = [0], [0]

    def enter() -> None:
        with alone(path) as mine:
            assert mine
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            with alone(path, wait=False) as again:
                assert not again
            inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(enter) for _ in range(40)]:
            done.result()
    assert most == [1]


def test_a_lock_whose_folder_is_removed_is_taken_where_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "folder" / "open.lock"
    opened, flock = threading.Event(), fcntl.flock

    def noting(file: int, how: int) -> None:
        opened.set()
        flock(file, how)

    def enter() -> bool:
        with alone(path), alone(path, wait=False) as again:
            return not again

    with ThreadPoolExecutor(1) as pool, alone(path):
        monkeypatch.setattr(fcntl, "flock", noting)
        waiting = pool.submit(enter)
        assert opened.wait(10)
        file = os.open(path, os.O_RDONLY)
        path.parent.rename(tmp_path / "gone")
        assert not stands(path, file) and stands(tmp_path / "gone" / "open.lock", file)
        os.close(file)
        with alone(path) as mine:
            assert mine, "the lock of a folder that is gone holds up nobody"
    assert waiting.result()


def test_nobody_passes_a_firm_lock_by(tmp_path: Path) -> None:
    firm, other = WriterLock(tmp_path / "lock", firm=True), WriterLock(tmp_path / "lock")
    firm.acquire(take_over=False)
    for take_over in (False, True):
        with pytest.raises(WriterBusy, match=f"process {os.getpid()}, which makes it anew"):
            other.acquire(take_over=take_over)
    firm.release()
    other.acquire(take_over=False)
    third = WriterLock(tmp_path / "lock")
    third.acquire(take_over=True)
    with pytest.raises(WriterBusy):
        firm.acquire(take_over=False)
    other.release()
