"""What a Kafka cluster says of topics, records and groups; every error of its client becomes one of ours here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    NoError,
    NotCoordinatorError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.consumer import OffsetSpec

from .connection import Connection
from .register import KINDS, Identity

_COORDINATOR_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.2


class Partition(NamedTuple):
    """One partition of a topic."""

    number: int
    leader: int
    """The broker that serves it; -1 where none does."""
    replicas: tuple[int, ...]
    """The brokers that hold it, and those of them that have all of it."""
    in_sync: tuple[int, ...]


class Topic(NamedTuple):
    """A topic as the cluster knows it."""

    id: UUID
    partitions: tuple[Partition, ...]
    """By number."""


class Extent(NamedTuple):
    """Which offsets a partition holds."""

    begin: int
    end: int
    """Of the next record."""


class Member(NamedTuple):
    """One worker of a consumer group."""

    id: str
    """The name it was given, or else what the cluster calls it."""
    host: str
    partitions: tuple[str, ...]
    """`documents-3` and its like, with the cluster's names of topics."""


class Cluster:
    """One connection for questions. Raises BrokerError as Connection.failure says, from every method."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._admin = connection.opened(KafkaAdminClient)

    def close(self) -> None:
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def brokers(self) -> int:
        """How many there are."""
        with self.connection.reached("asking for the brokers"):
            return len(self._admin.describe_cluster()["brokers"])

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Those of the topics that exist, by name."""
        with self.connection.reached("asking for the topics"):
            found = self._admin.describe_topics([*names])
            for topic in found:
                if (kind := for_code(topic["error_code"])) not in (NoError, UnknownTopicOrPartitionError):
                    raise kind(topic["name"])
        return {topic["name"]: _topic(topic) for topic in found if topic["partitions"]}

    def settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """All settings of topics, by their names."""
        asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        with self.connection.reached("asking for the settings of topics"):
            found = self._admin.describe_configs(asked, config_filter="all").get("topic", {})
        return {
            topic: {name: str(setting["value"]) for name, setting in settings.items()}
            for topic, settings in found.items()
        }

    def create(self, name: str, partitions: int, replication: int, settings: Mapping[str, str]) -> bool:
        """Make a topic, and wait until it can be used; False where there is one of that name already."""
        wanted = {"num_partitions": partitions, "replication_factor": replication, "configs": dict(settings)}
        with self.connection.reached(f"creating the topic {name}"):
            try:
                self._admin.create_topics({name: wanted}, wait_for_metadata=True)
            except TopicAlreadyExistsError:
                return False
        return True

    def extents(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Extent]:
        with self.connection.reached("asking for offsets"):
            begins = self._admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
            ends = self._admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        return {partition: Extent(begins[partition].offset, ends[partition].offset) for partition in partitions}

    def committed(self, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
        """By group, the offset of the next record of each partition; partitions without a commit are missing."""
        found = self._coordinated("asking for offsets of groups", lambda: self._admin.list_group_offsets([*groups]))
        return {
            group: {partition: place.offset for partition, place in found.get(group, {}).items() if place.offset >= 0}
            for group in groups
        }

    def members(self, groups: Sequence[str]) -> dict[str, list[Member]]:
        """Who is in each group now; nobody in a group that does not exist."""

        def ask() -> dict[str, Any]:
            found: dict[str, Any] = self._admin.describe_groups([*groups])
            for group in found.values():
                # The client raises only for some of what a coordinator says.
                if (error := group.get("error")) and GroupIdNotFoundError.__name__ not in error:
                    raise CoordinatorNotAvailableError(error)
            return found

        found = self._coordinated("asking for groups", ask)
        return {group: [_member(member) for member in found[group]["members"]] for group in groups}

    def _coordinated(self, doing: str, ask: Callable[[], Any]) -> Any:
        """Ask again while the cluster is choosing who coordinates a group: it does so at the first question."""
        deadline = time.monotonic() + _COORDINATOR_SECONDS
        with self.connection.reached(doing):
            while True:
                try:
                    return ask()
                except (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError):
                    if time.monotonic() > deadline:
                        raise
                time.sleep(_PAUSE_SECONDS)


def identities(connection: Connection) -> dict[str, Identity]:
    """The topics of events that exist, by kind: what a Register is opened with."""
    with Cluster(connection) as cluster:
        found = cluster.topics(connection.topic(kind) for kind in KINDS)
    return {
        kind: Identity(topic.id, len(topic.partitions))
        for kind in KINDS
        if (topic := found.get(connection.topic(kind))) is not None
    }


def _topic(found: Mapping[str, Any]) -> Topic:
    partitions = (
        Partition(
            one["partition_index"], one["leader_id"], tuple(one["replica_nodes"]), tuple(sorted(one["isr_nodes"]))
        )
        for one in found["partitions"]
    )
    return Topic(UUID(found["topic_id"]), tuple(sorted(partitions)))


def _member(found: Mapping[str, Any]) -> Member:
    assigned = (found["member_assignment"] or {}).get("assigned_partitions", ())
    partitions = sorted((topic["topic"], number) for topic in assigned for number in topic["partitions"])
    name = found["group_instance_id"] or found["member_id"]
    return Member(
        name, found["client_host"].removeprefix("/"), tuple(f"{topic}-{number}" for topic, number in partitions)
    )
