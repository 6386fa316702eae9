"""A Kafka cluster of one node or three on this machine, made for a test and thrown away."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from .node import Node

_HOST = "127.0.0.1"
_STOP_SECONDS = 10.0
_GROUPS_SECONDS = 30.0


class Cluster:
    """Brokers that are controllers too, each in a folder of its own below `folder`.

    Three nodes keep three copies of everything and acknowledge with two; one keeps one. A topic has four partitions
    unless it is made with another number, and none is made by being asked for. A node dies with the thread that
    started it, so a cluster belongs to a thread that stays.
    """

    def __init__(self, folder: Path, *, nodes: int = 1, port: int | None = None) -> None:
        """`port` is the first node's, the others have the next ones; without it free ones are taken."""
        numbers = range(1, nodes + 1)
        ports = _free_ports()
        self._ports = {number: next(ports) if port is None else port + number - 1 for number in numbers}
        voters = {number: f"{number}@{_HOST}:{next(ports)}" for number in numbers}
        self._nodes = {
            number: Node(number, folder / f"node-{number}", self._properties(number, voters)) for number in numbers
        }

    @property
    def bootstrap(self) -> str:
        """What a client is given: host:port of every node, with commas."""
        return ",".join(f"{_HOST}:{port}" for port in self._ports.values())

    def start(self, *nodes: int) -> None:
        """Start these nodes, or all that do not run, and wait until they serve topics and groups.

        Raises:
            RuntimeError: one of them did not start, with the end of its log.
        """
        starting = [self._nodes[number] for number in nodes or self._nodes if self._nodes[number].pid is None]
        for node in starting:
            node.launch()
        for node in starting:
            node.wait()
        self._serve_groups()

    def kill(self, node: int) -> None:
        """End a node as a crash does; `start(node)` brings it back with its data, at the same port."""
        self._nodes[node].kill()

    def stop(self) -> None:
        """Stop every node that runs; `start()` brings them back with their data."""
        # All at once: the last of three would wait for the others.
        for node in self._nodes.values():
            node.ask_to_stop()
        deadline = time.monotonic() + _STOP_SECONDS
        for node in self._nodes.values():
            if not node.stopped(max(0.0, deadline - time.monotonic())):
                node.kill()

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _properties(self, number: int, voters: dict[int, str]) -> dict[str, object]:
        copies = len(voters)
        acknowledging = max(1, copies - 1)
        clients = f"PLAINTEXT://{_HOST}:{self._ports[number]}"
        controller = voters[number].partition("@")[2]
        return {
            "process.roles": "broker,controller",
            "controller.quorum.voters": ",".join(voters.values()),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{clients},CONTROLLER://{controller}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "auto.create.topics.enable": "false",
            "num.partitions": 4,
            "default.replication.factor": copies,
            "min.insync.replicas": acknowledging,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.min.isr": acknowledging,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.num.partitions": 1,
            "share.coordinator.state.topic.min.isr": acknowledging,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "log.cleaner.dedupe.buffer.size": 16 << 20,
            "log.cleaner.threads": 1,
            "num.network.threads": 2,
            "num.io.threads": 4,
            "background.threads": 4,
        }

    def _serve_groups(self) -> None:
        """Wait until groups are coordinated: their topic is made by the first who asks, and refuses until then."""
        deadline = time.monotonic() + _GROUPS_SECONDS
        while True:
            try:
                admin = KafkaAdminClient(bootstrap_servers=self.bootstrap, bootstrap_timeout_ms=10_000)
                try:
                    admin.list_group_offsets(["ready"])
                finally:
                    admin.close()
                return
            except KafkaError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def _free_ports() -> Iterator[int]:
    """Ports on which nobody listens, each once.

    Below those that the system gives to clients: one of them could else have the port of a node that is down.
    """
    for port in random.Random().sample(range(20_000, 32_000), 12_000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
        yield port
