"""Tests of keeping workers alive: real processes that end, hang, and lose their supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.exits import Exit
from deploy.supervisor import Patience, supervise, worker_command

from ..broker.processes import lives
from ..support import wait_until

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = Patience(first=0.0, longest=0.0)

NOTE = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); "
"""A child first writes down its process."""


def child(file: Path, then: str) -> list[str]:
    return [sys.executable, "-c", NOTE + then, str(file)]


def pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


class Supervised:
    def __init__(self, commands: Mapping[str, Sequence[str]], patience: Patience, stop_seconds: float) -> None:
        self.stop, self.codes = threading.Event(), list[int]()
        self.thread = threading.Thread(
            target=lambda: self.codes.append(supervise(commands, self.stop, patience, stop_seconds))
        )
        self.thread.start()

    def end(self) -> int:
        self.stop.set()
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.codes[0]


@contextmanager
def supervised(
    commands: Mapping[str, Sequence[str]], patience: Patience = AT_ONCE, stop_seconds: float = 20.0
) -> Iterator[Supervised]:
    running = Supervised(commands, patience, stop_seconds)
    try:
        yield running
    finally:
        running.end()


@given(st.lists(st.floats(0, 100), min_size=1, max_size=2000))
def test_pauses_grow_to_a_bound_and_are_forgotten_after_a_good_while(runs: list[float]) -> None:
    patience, pause, failures = Patience(), None, 0
    for ran in runs:
        failures = 0 if ran >= patience.well_seconds else failures
        pause = patience.pause(pause, ran)
        assert 0 <= pause <= patience.longest
        if not failures:
            assert pause == (0.0 if ran >= patience.worked_seconds else patience.first)
        failures += 1


def test_pauses_double() -> None:
    def pauses(runs: Sequence[float]) -> list[float]:
        found: list[float | None] = [None]
        for ran in runs:
            found.append(Patience().pause(found[-1], ran))
        return [pause for pause in found if pause is not None]

    assert pauses([0.1] * 9) == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert pauses([10, 0.1, 10, 0.1]) == [0, 0.5, 1, 2], "the first is back at once, then it has to wait as others"
    assert pauses([0.1, 0.1, 61, 0.1]) == [0.5, 1, 0, 0.5]
    assert pauses([0.1] * 5000)[-1] == 30


@pytest.mark.parametrize(
    "end", ["sys.exit(0)", "sys.exit(3)", "os.kill(os.getpid(), 9)"], ids=["well", "badly", "kill"]
)
def test_whatever_ends_is_started_again(tmp_path: Path, end: str) -> None:
    dies, lives = tmp_path / "dies", tmp_path / "lives"
    with supervised({"one": child(dies, end), "two": child(lives, "time.sleep(60)")}):
        wait_until(lambda: len(pids(dies)) >= 3 and len(pids(lives)) == 1, timeout=30, what="three starts")


def test_one_that_keeps_ending_waits_and_can_be_stopped_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    with supervised({"one": child(file, "sys.exit(5)")}, Patience(first=3600.0, longest=3600.0)) as running:
        wait_until(lambda: bool(pids(file)), timeout=30, what="the first start")
        wait_until(lambda: not lives(pids(file)[0]), timeout=30, what="its end")
        assert running.end() in (Exit.OK, 5), "5 where its end was not noticed yet"
        assert len(pids(file)) == 1


def test_stopping_is_passed_on_and_the_worst_end_is_told(tmp_path: Path) -> None:
    well, badly = tmp_path / "well", tmp_path / "badly"
    ends = "import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit({code})); print(flush=True); "
    commands = {
        "one": child(well, ends.format(code=0) + "open(sys.argv[1] + '.ready', 'w'); time.sleep(60)"),
        "two": child(badly, ends.format(code=4) + "open(sys.argv[1] + '.ready', 'w'); time.sleep(60)"),
    }
    with supervised(commands) as running:
        wait_until(lambda: len(list(tmp_path.glob("*.ready"))) == 2, timeout=30, what="both")
        assert running.end() == 4
    assert not any(map(lives, pids(well) + pids(badly)))


def test_one_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); open(sys.argv[1] + '.ready', 'w'); "
    with supervised({"one": child(file, deaf + "time.sleep(60)")}, stop_seconds=0.1) as running:
        wait_until(lambda: (tmp_path / "pids.ready").exists(), timeout=30, what="the child")
        assert running.end() == 128 + signal.SIGKILL
    assert not lives(pids(file)[0])


PARENT = """
import sys, threading
from deploy.supervisor import supervise
leashed = "from deploy.supervisor import on_a_leash; on_a_leash(); " + sys.argv[3]
supervise({str(n): [sys.executable, "-c", leashed, sys.argv[n]] for n in (1, 2)}, threading.Event())
"""


def test_they_die_with_their_supervisor(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    command = [sys.executable, "-c", PARENT, *map(str, files), NOTE + "time.sleep(60)"]
    with subprocess.Popen(command, cwd=ROOT) as parent:
        wait_until(lambda: all(map(pids, files)), timeout=30, what="both children")
        parent.kill()
        parent.wait()
        found = [pid for file in files for pid in pids(file)]
        try:
            wait_until(lambda: not any(map(lives, found)), timeout=20, what="the end of both children")
        finally:
            for pid in filter(lives, found):
                os.kill(pid, signal.SIGKILL)


def test_the_command_of_a_worker_is_on_the_leash() -> None:
    command = worker_command("apply", ["--data", "x"])
    assert command[-6:] == ["worker", "--role", "apply", "--leashed", "--data", "x"]
    shown = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert "--from-start" in shown.stdout and "--leashed" not in shown.stdout
