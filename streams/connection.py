"""How a Kafka cluster is reached: addresses, security and names, the same for every client."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from kafka import errors as kafka
from kafka.net.compat import KafkaNetClient

from index.errors import BadRequest, BrokerError, BrokerRefused, BrokerUnavailable, WrongTopics

Security = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

Client = TypeVar("Client")

DOCUMENTS: Final = "documents"
"""Events as they were accepted."""
UNDERSTOOD: Final = "understood"
"""The same events, once all that a model has to say about them is kept."""
DEAD_LETTERS: Final = "dead-letters"
"""What could not be indexed, with the reason."""

UNDERSTAND: Final = "understand"
"""The role that reads `documents` and tells of them in `understood`."""
APPLY: Final = "apply"
"""The role that reads `understood` and commits."""

BOOTSTRAP_SECONDS: Final = 10.0
"""How long a client looks for a broker before it says that there is none."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One cluster, and the names that one installation has in it."""

    bootstrap: str
    """host:port of some brokers, separated by commas."""
    prefix: str = ""
    """Stands before every topic and group, so that several installations share a cluster."""
    security: Security = "PLAINTEXT"
    mechanism: Mechanism = "PLAIN"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    """PEM of the authority that signed the brokers' certificates; None trusts what the system trusts."""
    certificate_file: Path | None = None
    """PEM of our own certificate, where brokers ask for one, and its key."""
    key_file: Path | None = None

    def __post_init__(self) -> None:
        if self.has_login and (self.username is None or self.password is None):
            raise BadRequest(f"{self.security} needs a user", hint="set kafka_username and kafka_password")

    @property
    def has_login(self) -> bool:
        return self.security.startswith("SASL")

    @property
    def is_encrypted(self) -> bool:
        return self.security.endswith("SSL")

    def topic(self, kind: str) -> str:
        """The name of one of our topics in this cluster."""
        return self.prefix + kind

    def group(self, role: str) -> str:
        """The consumer group of a role."""
        return f"{self.prefix}gistream-{role}"

    def ssl_context(self) -> ssl.SSLContext | None:
        """None where nothing is encrypted. Raises BadRequest for files that are missing or no PEM."""
        if not self.is_encrypted:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file)
        except (OSError, ssl.SSLError) as error:
            hint = "check kafka_ca_file, kafka_certificate_file and kafka_key_file"
            raise BadRequest(f"the certificates for Kafka cannot be read: {error}", hint=hint) from error
        return context

    @contextmanager
    def reached(self, doing: str) -> Iterator[None]:
        """Turn what kafka-python raises inside of the block into a BrokerError; `doing` says what could not be done."""
        try:
            yield
        except kafka.KafkaError as error:
            raise self.failure(error, doing) from error

    def failure(self, error: Exception, doing: str) -> BrokerError:
        """What an error of kafka-python means for its caller, who was `doing` something."""
        failed = f"{doing}: {self.bootstrap} failed with {_described(error)}"
        match error:
            case kafka.AuthorizationError() | kafka.SaslAuthenticationFailedError():
                hint = f"let the user {self.username} of Kafka read, write, create and describe {self.prefix}*"
                return BrokerRefused(failed, hint=hint)
            case kafka.UnknownTopicOrPartitionError():
                return WrongTopics(failed, hint="make the topics with `gistream topics create`")
            case kafka.KafkaTimeoutError() if "bootstrap" in str(error):
                return BrokerUnavailable(f"{doing}: nobody could be asked at {self.bootstrap}", hint=self._unreachable)
            case (
                kafka.KafkaError(retriable=True)
                # These end one client, and not the next one.
                | kafka.IllegalStateError()
                | kafka.OutOfOrderSequenceNumberError()
                | kafka.UnknownProducerIdError()
                | kafka.InvalidProducerEpochError()
            ):
                hint = "try again; `gistream topics check` tells whether brokers answer and topics are there"
                return BrokerUnavailable(failed, hint=hint)
        return BrokerRefused(failed, hint="`gistream topics check` tells what is not as it must be")

    @property
    def _unreachable(self) -> str:
        """A client is told nothing of what kept it from the first broker, so all that may have done is said."""
        reasons = ["no broker runs there or it cannot be reached"]
        if self.is_encrypted:
            trusted = "kafka_ca_file" if self.ca_file else "the system's authorities"
            reasons.append(f"its certificate is not signed by {trusted}")
        if self.has_login:
            reasons.append(f"kafka_username {self.username} or kafka_password is wrong for {self.mechanism}")
        reasons.append(f"kafka_security must be another than {self.security}")
        return f"either {', or '.join(reasons)}"

    def opened(self, client: Callable[..., Client], **settings: Any) -> Client:
        """A client of kafka-python, connected: `client` is its class. Raises BrokerError where no broker lets it in."""
        networks = list[KafkaNetClient]()

        def network(**settings: Any) -> KafkaNetClient:
            networks.append(KafkaNetClient(**settings))
            return networks[-1]

        try:
            with self.reached("connecting to Kafka"):
                return client(**self.client(), **settings, kafka_client=network)
        except BaseException:
            # A client that found no broker leaves its sockets open, and a thread that goes on looking.
            for one in networks:
                one.close()
            raise

    def client(self) -> dict[str, Any]:
        """The arguments that every client of kafka-python takes."""
        common: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap.split(","),
            "security_protocol": self.security,
            "bootstrap_timeout_ms": round(BOOTSTRAP_SECONDS * 1000),
            # By default a client that lost its broker looks again only after half a minute.
            "reconnect_backoff_max_ms": 1000,
        }
        if self.has_login:
            common |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        if (context := self.ssl_context()) is not None:
            common["ssl_context"] = context
        return common


def _described(error: Exception) -> str:
    """An error of kafka-python on one short line."""
    return " ".join(str(error).split())[:_SHOWN]


_SHOWN: Final = 200
