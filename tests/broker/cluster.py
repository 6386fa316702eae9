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

from .certificates import Certificates, certificates
from .java import PASSWORD, USER
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

    def __init__(self, folder: Path, *, nodes: int = 1, port: int | None = None, sasl: bool = False) -> None:
        """`port` is the first node's, the others have the next ones; without it free ones are taken.

        With `sasl` clients come in by TLS alone and say who they are: `USER` and `PASSWORD`, by PLAIN or SCRAM-SHA-256;
        `authority` is whom they have to trust.
        """
        numbers = range(1, nodes + 1)
        free = _free_ports()
        self._clients = {number: next(free) if port is None else port + number - 1 for number in numbers}
        # Nodes, and the question whether they serve, need no password.
        self._brokers = {number: next(free) for number in numbers}
        self._controllers = {number: next(free) for number in numbers}
        made = certificates(folder / "certificates", host=_HOST) if sasl else None
        self.authority = made.authority if made is not None else None
        self._nodes = {
            number: Node(number, folder / f"node-{number}", self._properties(number, made)) for number in numbers
        }

    @property
    def bootstrap(self) -> str:
        """What a client is given: host:port of every node, with commas."""
        return _addresses(self._clients)

    @property
    def pid(self) -> int:
        """Of the first node's process. Raises RuntimeError where it does not run."""
        if (pid := self._nodes[1].pid) is None:
            raise RuntimeError("the first node does not run")
        return pid

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

    def said(self) -> str:
        """What all nodes have written so far: warnings, and who was not let in."""
        return "".join(node.said() for node in self._nodes.values())

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

    def _properties(self, number: int, made: Certificates | None) -> dict[str, object]:
        copies = len(self._clients)
        acknowledging = max(1, copies - 1)
        clients = f"CLIENTS://{_HOST}:{self._clients[number]},BROKERS://{_HOST}:{self._brokers[number]}"
        how = "PLAINTEXT" if made is None else "SASL_SSL"
        secured = {} if made is None else _secured(made)
        return secured | {
            "process.roles": "broker,controller",
            "controller.quorum.voters": ",".join(f"{n}@{_HOST}:{port}" for n, port in self._controllers.items()),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{clients},CONTROLLER://{_HOST}:{self._controllers[number]}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": f"CLIENTS:{how},BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
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
            # A node that was killed is let in again only when its former life has timed out; by default after 9 s.
            "broker.session.timeout.ms": 4000,
            "broker.heartbeat.interval.ms": 500,
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
                admin = KafkaAdminClient(bootstrap_servers=_addresses(self._brokers), bootstrap_timeout_ms=10_000)
                try:
                    admin.list_group_offsets(["ready"])
                finally:
                    admin.close()
                return
            except KafkaError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def _secured(made: Certificates) -> dict[str, object]:
    """How clients say who they are; that SCRAM knows the user comes with a node's empty folder."""
    module = "org.apache.kafka.common.security"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": made.server,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": made.authority,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.clients.plain.sasl.jaas.config": (
            f'{module}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        "listener.name.clients.scram-sha-256.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
    }


def _addresses(ports: dict[int, int]) -> str:
    return ",".join(f"{_HOST}:{port}" for port in ports.values())


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
