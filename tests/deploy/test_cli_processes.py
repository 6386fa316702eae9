"""Commands beside other processes: who does the work, who waits, and what an interrupted one leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.assembly import build_pipeline, log_path
from deploy.exits import Exit
from deploy.settings import Settings, load
from index.home import Home
from query.status import sizes
from streams.local import Runner
from streams.log import Log
from tests.support import GISTREAM

from ..support import wait_until
from .terminal import Terminal, lines

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def settings(gistream: Terminal) -> Settings:
    return load()


@pytest.fixture
def other(settings: Settings) -> Iterator[Runner]:
    """A runner that this test holds, as a server would: it applies what it is told to."""
    with Log(log_path(settings)) as log, Runner(Home(settings.data), log, build_pipeline(settings)) as runner:
        yield runner


def documents(settings: Settings, namespace: str) -> int:
    held = sizes(Home(settings.data)).get(namespace)
    return 0 if held is None else held.documents


def test_ingest_waits_for_the_process_that_indexes(gistream: Terminal, settings: Settings, other: Runner) -> None:
    ended: list[int] = []
    waiting = threading.Thread(
        target=lambda: ended.append(gistream("ingest", "notes", "-", stdin=lines({"id": "a", "text": "x"})).code)
    )
    waiting.start()
    wait_until(lambda: other.log.last_position() == 1, what="the event in the log")
    assert not ended
    other.drain()
    waiting.join(10)
    assert ended == [Exit.OK]
    assert documents(settings, "notes") == 1


def test_ingest_takes_over_when_that_process_ends(gistream: Terminal, settings: Settings) -> None:
    ended: list[int] = []
    with Log(log_path(settings)) as log:
        other = Runner(Home(settings.data), log, build_pipeline(settings))
        waiting = threading.Thread(
            target=lambda: ended.append(gistream("ingest", "notes", "-", stdin=lines({"id": "a", "text": "x"})).code)
        )
        waiting.start()
        wait_until(lambda: log.last_position() == 1, what="the event in the log")
        assert not ended
        other.close()
        waiting.join(10)
    assert ended == [Exit.OK]
    assert documents(settings, "notes") == 1


def test_what_only_one_may_do_says_who_does_it(gistream: Terminal, settings: Settings, other: Runner) -> None:
    other.log.append([])
    gistream.ok("ingest", "notes", "-", "--no-wait", stdin=lines({"id": "a", "text": "x"}))
    other.drain()
    for arguments in (("serve", "--port", "0"), ("rebuild", "notes")):
        ended = gistream(*arguments)
        assert ended.code == Exit.BUSY, ended
        assert f"process {os.getpid()}" in ended.err
    assert gistream.ok("delete", "notes", "a", "--no-wait", "--json").json["snapshot"] is None
    other.drain()
    assert documents(settings, "notes") == 0
    gistream.ok("verify", "notes")


def test_a_slow_pipe_is_indexed_as_it_flows_and_ctrl_c_keeps_it(gistream: Terminal, settings: Settings) -> None:
    running = subprocess.Popen(
        [*GISTREAM, "ingest", "notes", "-"], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdin is not None and running.stderr is not None
    try:
        for number in range(1, 4):
            running.stdin.write(json.dumps({"id": f"d{number}", "text": f"Line {number}."}) + "\n")
            running.stdin.flush()
            wait_until(lambda: documents(settings, "notes") == number, timeout=60, what=f"document {number}")  # noqa: B023
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130, running.stderr.read()
        assert "Traceback" not in running.stderr.read()
    finally:
        running.kill()
        running.wait()
        running.stdin.close()
        running.stderr.close()
    gistream.ok("ingest", "notes", "-", stdin=lines({"id": "d4", "text": "Line 4."}))
    assert documents(settings, "notes") == 4


def test_to_look_loads_neither_tables_nor_models(gistream: Terminal, settings: Settings) -> None:
    gistream.ok("ingest", "notes", "-", stdin=lines({"id": "a", "text": "x"}))
    program = "import sys; from deploy.cli import run; run(sys.argv[1:]); print(*sys.modules)"
    for arguments in (("status",), ("snapshots", "notes"), ("dead-letters", "list")):
        ended = subprocess.run(
            [*GISTREAM[:2], program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == 0, ended.stderr
        loaded = set(ended.stdout.splitlines()[-1].split())
        assert loaded & {"lance", "lancedb", "openai", "query.retrieve", "streams.local"} == set(), arguments
