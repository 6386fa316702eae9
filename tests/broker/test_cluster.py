"""The Kafka that tests run on keeps what it has acknowledged, and is as guarded and as hard to kill as it says."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError

from tests.support import wait_until

from .cluster import Cluster
from .java import PASSWORD, USER
from .processes import children

ROOT = Path(__file__).resolve().parents[2]


def create(cluster: Cluster, topic: str, **client: Any) -> None:
    """A topic of one partition with as many copies as there are nodes."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap, **client)
    admin.create_topics({topic: {"num_partitions": 1, "replication_factor": -1}}, wait_for_metadata=True)
    admin.close()


@contextmanager
def producing(cluster: Cluster, **client: Any) -> Iterator[KafkaProducer]:
    """A producer that is told of an event only when it is kept."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        acks="all",
        max_block_ms=60_000,
        bootstrap_timeout_ms=10_000,
        reconnect_backoff_max_ms=1000,
        **client,
    )
    try:
        yield producer
    finally:
        producer.close(timeout=10)


def produce(cluster: Cluster, topic: str, values: list[bytes], **client: Any) -> None:
    with producing(cluster, **client) as producer:
        for sent in [producer.send(topic, value) for value in values]:
            sent.get(timeout=60)


def consume(cluster: Cluster, topic: str, count: int, **client: Any) -> list[bytes]:
    """The first `count` values; fewer, where a minute brings no more."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=60_000,
        reconnect_backoff_max_ms=1000,
        **client,
    )
    try:
        return [record.value for record in islice(consumer, count)]
    finally:
        consumer.close()


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_is_produced_is_consumed_in_a_group_too(kafka: Cluster, kafka_prefix: str) -> None:
    topic = f"{kafka_prefix}events"
    create(kafka, topic)
    produce(kafka, topic, numbered(50))
    assert consume(kafka, topic, 50) == numbered(50)
    assert consume(kafka, topic, 50, group_id=f"{kafka_prefix}group") == numbered(50)


@pytest.mark.slow
@pytest.mark.usefixtures("kafka_installed")
def test_what_was_acknowledged_is_there_after_a_crash(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        create(cluster, "events")
        with producing(cluster) as producer:
            for value in numbered(20):
                producer.send("events", value).get(timeout=60)
            cluster.kill(1)
            # Sent while nobody listens; it is kept once the node is back at its address.
            waiting = producer.send("events", b"20")
            cluster.start(1)
            waiting.get(timeout=60)
        assert consume(cluster, "events", 21) == numbered(21)
        cluster.stop()
        cluster.start()
        assert consume(cluster, "events", 21, group_id="g") == numbered(21)


@pytest.mark.slow
def test_of_three_nodes_one_may_be_lost(three_nodes: Cluster) -> None:
    create(three_nodes, "events")
    admin = KafkaAdminClient(bootstrap_servers=three_nodes.bootstrap, reconnect_backoff_max_ms=1000)
    leader = admin.describe_topics(["events"])[0]["partitions"][0]["leader_id"]
    with producing(three_nodes) as producer:
        sent = [producer.send("events", value) for value in numbered(20)]
        three_nodes.kill(leader)
        sent += [producer.send("events", value) for value in numbered(20, 20)]
        for kept in sent:
            kept.get(timeout=60)
    assert consume(three_nodes, "events", 40) == numbered(40)

    three_nodes.start(leader)
    wait_until(
        lambda: len(admin.describe_topics(["events"])[0]["partitions"][0]["isr_nodes"]) == 3,
        timeout=60,
        what="three copies again",
    )
    admin.close()


@pytest.mark.slow
@pytest.mark.usefixtures("kafka_installed")
def test_who_has_the_password_comes_in_and_nobody_else(tmp_path: Path) -> None:
    with Cluster(tmp_path, sasl=True) as cluster:
        known: dict[str, Any] = {
            "security_protocol": "SASL_SSL",
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
            "ssl_cafile": str(cluster.authority),
        }
        refused = {
            "PLAIN": "Authentication failed: Invalid username or password",
            "SCRAM-SHA-256": "invalid credentials with SASL mechanism SCRAM-SHA-256",
        }
        for mechanism, told in refused.items():
            client = known | {"sasl_mechanism": mechanism}
            create(cluster, mechanism, **client)
            produce(cluster, mechanism, numbered(5), **client)
            assert consume(cluster, mechanism, 5, **client) == numbered(5)

            # The client tries until its time is up and does not say why; the broker does.
            with pytest.raises(KafkaTimeoutError):
                wrong = client | {"sasl_plain_password": "guessed"}
                KafkaAdminClient(bootstrap_servers=cluster.bootstrap, bootstrap_timeout_ms=3000, **wrong)
            assert told in cluster.said()

        host, port = cluster.bootstrap.split(":")
        with socket.create_connection((host, int(port))) as connected:
            strangers = ssl.create_default_context()
            with pytest.raises(ssl.SSLCertVerificationError):
                strangers.wrap_socket(connected, server_hostname=host)


@pytest.mark.usefixtures("kafka_installed")
def test_a_broker_that_cannot_start_says_why(tmp_path: Path, kafka: Cluster) -> None:
    taken = int(kafka.bootstrap.rpartition(":")[2])
    with pytest.raises(RuntimeError, match="Address already in use"):
        Cluster(tmp_path, port=taken).start()


@pytest.mark.usefixtures("kafka_installed")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_broker_outlives_who_started_it(stop: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.broker"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as running:
        try:
            assert running.stdout is not None
            variable, _, bootstrap = running.stdout.readline().strip().partition("=")
            assert variable == "export GISTREAM_KAFKA_BOOTSTRAP"
            KafkaAdminClient(bootstrap_servers=bootstrap).close()
            (broker,) = children(running.pid)
            running.send_signal(stop)
            code = running.wait(30)
        finally:
            running.kill()
    assert code == (-stop if stop == signal.SIGKILL else 0)
    wait_until(lambda: not is_running(broker), what="the end of the broker")
    assert stop == signal.SIGKILL or list(tmp_path.iterdir()) == []
