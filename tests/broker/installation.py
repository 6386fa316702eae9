"""gistream over a real broker as an operator runs it: topics made, workers in processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from index.errors import NotFound
from index.home import Home
from index.manifest import Manifest, Manifests
from streams.cluster import identities
from streams.connection import Connection
from streams.producer import KafkaInbox
from streams.register import Register
from streams.topics import Layout, create
from tests.support import GISTREAM, environment, variables

from . import processes

Supervised = subprocess.Popen[bytes]


class Installation:
    """One data folder and one prefix of topics."""

    def __init__(self, data: Path, bootstrap: str, prefix: str, *, partitions: int = 4, **settings: object) -> None:
        """`settings` go to the workers, by their names."""
        self.home = Home(data)
        self.connection = Connection(bootstrap, prefix)
        create(self.connection, Layout(partitions))
        self.register = Register.open(data, self.connection, identities)
        own = {"data": data, "kafka_bootstrap": bootstrap, "kafka_prefix": prefix}
        self.environment = environment(**own | settings)

    def producer(self) -> KafkaInbox:
        """A producer of events; close it."""
        return KafkaInbox(self.connection, self.register)

    @contextmanager
    def worker(self, role: str = "all", *, log: Path = Path(os.devnull), **settings: object) -> Iterator[Supervised]:
        """A supervised worker that is told to stop in the end; what it says goes to the end of `log`."""
        command = [*GISTREAM, "worker", "--role", role]
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, env=self.environment | variables(**settings), stdout=output, stderr=output
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(90)

    def newest(self, name: str) -> Manifest | None:
        """The newest snapshot of a namespace; None before the first."""
        try:
            return Manifests(self.home.incarnation(name) / "manifests").newest()
        except NotFound:
            return None

    def documents(self) -> int:
        """Documents in the newest snapshots of all namespaces."""
        found = (self.newest(name) for name in self.home.names())
        return sum(manifest.counts.documents for manifest in found if manifest is not None)


def children(process: Supervised) -> dict[str, int]:
    """Process ids of a supervisor's workers by role; one that has just ended is not among them."""
    found = {}
    for pid in processes.children(process.pid):
        words = processes.command(pid)
        if "--role" in words:
            found[words[words.index("--role") + 1]] = pid
    return found


def kill(pid: int) -> float:
    """End a process as a crash does; returns when, on the clock of manifests (seconds since 1970)."""
    os.kill(pid, signal.SIGKILL)
    return time.time()


def free_port() -> int:
    """A port on which nobody listens at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def metrics(port: int) -> Mapping[str, float]:
    """Every metric of a worker by its name and labels, as Prometheus would read it."""
    lines = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
    values = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, value in values}
