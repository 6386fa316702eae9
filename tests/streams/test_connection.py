"""How Kafka is reached: passwords, certificates, and what is said where it is not."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import errors

from index.errors import BadRequest, BrokerError, BrokerRefused, BrokerUnavailable, WrongTopics
from index.types import DocumentEvent
from streams import connection as connecting
from streams import producer as producing
from streams.cluster import Cluster as Asked
from streams.connection import DEAD_LETTERS, Connection, Mechanism
from streams.producer import KafkaInbox, Outgoing, Producer
from tests.broker.cluster import Cluster
from tests.broker.java import PASSWORD, USER

from .kafka_topics import LIMITS, registered, values


def test_names_carry_the_prefix() -> None:
    connection = Connection("a:1,b:2", prefix="here-")
    assert connection.topic("documents") == "here-documents"
    assert connection.group("apply") == "here-gistream-apply"
    assert connection.client()["bootstrap_servers"] == ["a:1", "b:2"]
    assert "ssl_context" not in connection.client()


def test_a_user_is_asked_for_where_one_is_needed(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"SASL_SSL needs a user\. set kafka_username and kafka_password"):
        Connection("a:1", security="SASL_SSL", username="app")
    with pytest.raises(BadRequest, match=r"certificates for Kafka cannot be read: .*check kafka_ca_file"):
        Connection("a:1", security="SSL", ca_file=tmp_path / "nothing.pem").client()
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(BadRequest, match=r"certificates for Kafka cannot be read"):
        Connection("a:1", security="SSL", certificate_file=tmp_path / "empty.pem").client()


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (errors.TopicAuthorizationFailedError("documents"), BrokerRefused, "let the user app of Kafka"),
        (errors.UnknownTopicOrPartitionError("x"), WrongTopics, "gistream topics create"),
        (errors.KafkaTimeoutError("Unable to bootstrap from []"), BrokerUnavailable, "nobody could be asked at a:1"),
        (errors.KafkaTimeoutError("later"), BrokerUnavailable, "try again"),
        (errors.NotEnoughReplicasError(), BrokerUnavailable, "try again"),
        (errors.OutOfOrderSequenceNumberError(), BrokerUnavailable, "try again"),
        (errors.IllegalStateError("closed"), BrokerUnavailable, "try again"),
        (errors.InvalidReplicationFactorError("3"), BrokerRefused, "gistream topics check"),
        (errors.MessageSizeTooLargeError("9"), BrokerRefused, "gistream topics check"),
    ],
)
def test_what_went_wrong_is_said_with_what_to_do(error: errors.KafkaError, kind: type[BrokerError], told: str) -> None:
    connection = Connection("a:1", security="SASL_PLAINTEXT", username="app", password="secret")
    with pytest.raises(kind, match=told) as caught, connection.reached("asking"):
        raise error
    assert type(caught.value) is kind
    assert str(caught.value).startswith("asking: ")
    assert "secret" not in str(caught.value) + repr(connection)
    assert caught.value.recoverable == (kind is BrokerUnavailable)


def test_no_broker_is_said_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 1.0)
    with socket.socket() as taken:
        # Bound, and nobody listens.
        taken.bind(("127.0.0.1", 0))
        connection = Connection(f"127.0.0.1:{taken.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(
            BrokerUnavailable, match=r"nobody could be asked at 127\.0\.0\.1:\d+\. either no broker runs"
        ):
            Asked(connection)
        with Producer(connection) as producer, pytest.raises(BrokerUnavailable, match="connecting to Kafka"):
            producer.send([Outgoing(DEAD_LETTERS, 0, b"k", b"v")])
        assert time.monotonic() - started < 20


@pytest.fixture(scope="module")
def secured(kafka_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that wants a password, over TLS."""
    with Cluster(tmp_path_factory.mktemp("secured"), sasl=True) as cluster:
        yield cluster


def entering(secured: Cluster, prefix: str = "", **changed: Any) -> Connection:
    known = {"security": "SASL_SSL", "username": USER, "password": PASSWORD, "ca_file": secured.authority}
    return Connection(secured.bootstrap, prefix=prefix, **(known | changed))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_password_opens(secured: Cluster, kafka_prefix: str, tmp_path: Path, mechanism: Mechanism) -> None:
    connection = entering(secured, kafka_prefix, mechanism=mechanism)
    with KafkaInbox(connection, registered(connection, tmp_path), LIMITS) as inbox:
        assert inbox.append([DocumentEvent(namespace="notes", id="a")])
        inbox.send([Outgoing(DEAD_LETTERS, 0, b"k", b"v")])
    assert values(connection, DEAD_LETTERS, 0) == [b"v"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"password": "guessed"}, "kafka_username app or kafka_password is wrong for PLAIN"),
        ({"password": "guessed", "mechanism": "SCRAM-SHA-256"}, "kafka_password is wrong for SCRAM-SHA-256"),
        ({"ca_file": None}, "its certificate is not signed by the system's authorities"),
        ({"security": "PLAINTEXT"}, "kafka_security must be another than PLAINTEXT"),
    ],
)
def test_who_is_not_let_in_is_told_what_it_may_be(
    secured: Cluster, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], reason: str
) -> None:
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 1.5)
    with pytest.raises(BrokerUnavailable, match=reason) as caught:
        Asked(entering(secured, **changed))
    assert secured.bootstrap in str(caught.value)
    assert "guessed" not in str(caught.value)


@pytest.mark.slow
def test_a_broker_that_goes_and_comes_back(
    secured: Cluster, kafka_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be stored is said in time, and the same inbox goes on when the broker is there again."""
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 1.0)
    monkeypatch.setattr(producing, "DELIVERY_SECONDS", 2.0)
    monkeypatch.setattr(producing, "_REQUEST_SECONDS", 1.0)
    connection = entering(secured, kafka_prefix)
    event = DocumentEvent(namespace="notes", id="a")
    with KafkaInbox(connection, registered(connection, tmp_path), LIMITS) as inbox:
        inbox.append([event])
        secured.stop()
        started = time.monotonic()
        with pytest.raises(BrokerUnavailable, match=r"could not be stored: .* sending all of them again"):
            inbox.append([event])
        with pytest.raises(BrokerUnavailable, match="connecting to Kafka"):
            inbox.append([event])
        assert time.monotonic() - started < 20
        secured.start()
        monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 30.0)
        [token] = inbox.append([event])
        assert int(token.rpartition(":")[2]) >= 1
