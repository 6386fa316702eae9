"""A server in a process of its own, as an operator runs it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.settings import Settings
from tests.support import GISTREAM, environment, wait_until

LOG = "server.log"
WORKER_LOG = "worker.log"
_COMMAND = (*GISTREAM, "serve", "--port", "0")
_STARTED = re.compile(r"gistream listens on (\S+)\n")


@contextmanager
def process(data: Path, **settings: object) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`gistream serve` over `data`, and its address; it writes to LOG there. What still runs at the end is killed."""
    found = environment(data=data, **settings)
    # A file never fills up, so a server to whose output nobody listens goes on.
    with open(data / LOG, "wb") as log:
        running = subprocess.Popen(_COMMAND, env=found, stdout=log, stderr=log, cwd=data)
    try:
        wait_until(
            lambda: running.poll() is not None or _STARTED.search(said(data)) is not None,
            timeout=60,
            what="the server's address",
        )
        started = _STARTED.search(said(data))
        assert started is not None, f"no server: {said(data)}"
        yield running, started[1]
    finally:
        running.kill()
        running.wait()


@contextmanager
def worker(settings: Settings, role: str = "all") -> Iterator[subprocess.Popen[bytes]]:
    """`gistream worker` with these settings, over their data folder; it writes to WORKER_LOG there."""
    given = {"worker_session_seconds": 6, **settings.model_dump(exclude_defaults=True, exclude={"port"})}
    found = environment(**given)
    settings.data.mkdir(parents=True, exist_ok=True)
    with open(settings.data / WORKER_LOG, "wb") as log:
        command = [*GISTREAM, "worker", "--role", role]
        running = subprocess.Popen(command, env=found, stdout=log, stderr=log, cwd=settings.data)
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(timeout=30)
        finally:
            running.kill()
            running.wait()


def said(data: Path) -> str:
    """What the server over `data` has written so far."""
    return (data / LOG).read_text()
