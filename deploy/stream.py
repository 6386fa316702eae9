"""What a process needs to send events to Kafka: the topics it knows, an inbox, and the dead letters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

from index.types import DocumentEvent
from streams.cluster import Cluster, identities
from streams.connection import APPLY, UNDERSTAND
from streams.letter_topic import TopicLetters
from streams.producer import KafkaInbox, Producer
from streams.register import Register

from .assembly import connection, limits
from .settings import Settings


class Stream:
    """The topics of an installation, as an Inbox with its dead letters. Connects when it is used first, so that a
    service begins, and answers, while no broker runs. Safe for threads.
    """

    def __init__(self, settings: Settings) -> None:
        """Raises BadRequest where the settings of Kafka do not fit together."""
        # It tells of every connection that fails, several times a second; what comes of that is told by us.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self.connection = connection(settings)
        self._settings = settings
        self._limits = limits(settings)
        self._opening = threading.Lock()
        self._register: Register | None = None
        self._inbox: KafkaInbox | None = None
        self._stack = ExitStack()
        # Of its own: a letter that cannot be stored must not end what others are sending.
        sender = self._stack.enter_context(Producer(self.connection, self._limits))
        self.letters = self._stack.enter_context(TopicLetters(sender, lambda: self))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._inbox is not None:
            self._inbox.close()
        self._stack.close()

    @property
    def register(self) -> Register:
        """The topics as this data folder knows them. Raises BrokerError as Register.open does."""
        with self._opening:
            if self._register is None:
                self._register = Register.open(self._settings.data, self.connection, identities)
            return self._register

    def idle_roles(self) -> list[str]:
        """The roles that no worker has at present. Raises BrokerError."""
        groups = {role: self.connection.group(role) for role in (UNDERSTAND, APPLY)}
        with Cluster(self.connection) as cluster:
            members = cluster.members([*groups.values()])
        return [role for role, group in groups.items() if not members[group]]

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        """See Inbox. Raises as `register` and KafkaInbox.append do."""
        register = self.register
        with self._opening:
            if self._inbox is None:
                self._inbox = KafkaInbox(self.connection, register, self._limits)
        return self._inbox.append(events)
