"""Our topics in a cluster: how they must be, made so, and compared with what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka import TopicPartition

from .cluster import Cluster, Topic
from .connection import DEAD_LETTERS, DOCUMENTS, UNDERSTOOD, Connection
from .events import DEFAULT_LIMITS, Limits
from .register import KINDS, Identity, difference, registered
from .topic_lag import READS, lag
from .wire import most_bytes

ALL: Final = (DOCUMENTS, UNDERSTOOD, DEAD_LETTERS)

_HOUR: Final = 3_600_000
_TOMBSTONES: Final = 7 * 24 * _HOUR
"""Milliseconds that a tombstone stays at least, so that a worker that was away for less sees every delete."""
_UNTOUCHED: Final = 24 * _HOUR
"""Milliseconds in which no event of a document gives way to its next one: it is understood before."""
_AT_LEAST: Final = frozenset({"max.message.bytes", "min.insync.replicas", "retention.ms", "delete.retention.ms"}) | {
    "min.compaction.lag.ms"
}
"""Settings of which more is as good; of the others only the very word is."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How topics are made."""

    partitions: int = 12
    """Of documents and of understood, for life."""
    replication: int | None = None
    """Brokers that hold each record; None: three where the cluster has them, else one."""
    retention_hours: float = 168.0
    """How long an understood event waits to be applied."""
    limits: Limits = DEFAULT_LIMITS

    def copies(self, brokers: int) -> int:
        return self.replication or (3 if brokers >= 3 else 1)

    def partitions_of(self, kind: str) -> int:
        # Letters are looked up by their key all together, and are few.
        return 1 if kind == DEAD_LETTERS else self.partitions

    def settings(self, kind: str, copies: int) -> dict[str, str]:
        """What the cluster is told of a topic."""
        settings = {
            "message.timestamp.type": "LogAppendTime",
            "max.message.bytes": str(most_bytes(kind, self.limits)),
            "min.insync.replicas": str(max(1, copies - 1)),
        }
        if kind == UNDERSTOOD:
            return settings | {"cleanup.policy": "delete", "retention.ms": str(round(self.retention_hours * _HOUR))}
        settings |= {"cleanup.policy": "compact", "delete.retention.ms": str(_TOMBSTONES)}
        return settings | {"min.compaction.lag.ms": str(_UNTOUCHED)} if kind == DOCUMENTS else settings


class Finding(NamedTuple):
    """Something that is not as it must be."""

    topic: str
    flaw: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.topic} {self.flaw}: {self.remedy}"


def create(connection: Connection, layout: Layout = Layout()) -> list[str]:
    """Make the topics that are missing, and return their names. Those that are there stay as they are.

    Raises BrokerError where the cluster cannot be asked or refuses, like too few brokers for the replication.
    """
    with Cluster(connection) as cluster:
        copies = layout.copies(cluster.brokers())
        there = cluster.topics(map(connection.topic, ALL))
        return [
            name
            for kind in ALL
            if (name := connection.topic(kind)) not in there
            and cluster.create(name, layout.partitions_of(kind), copies, layout.settings(kind, copies))
        ]


def check(connection: Connection, data: Path, layout: Layout = Layout()) -> list[Finding]:
    """All that differs in the cluster from what is wanted, and from what the data folder knows; nothing is changed.

    Raises BrokerError where the cluster cannot be asked, Torn where the folder is damaged.
    """
    with Cluster(connection) as cluster:
        copies = layout.copies(cluster.brokers())
        names = [connection.topic(kind) for kind in ALL]
        topics = cluster.topics(names)
        settings = cluster.settings(topics)
    findings = list[Finding]()
    for kind, name in zip(ALL, names, strict=True):
        if (topic := topics.get(name)) is None:
            findings.append(Finding(name, "is missing", "make it with `gistream topics create`"))
            continue
        flaws = (
            *_identity(kind, topic, data, layout),
            *_placement(topic, copies, int(settings[name]["min.insync.replicas"])),
            *_settings(connection, name, settings[name], layout.settings(kind, copies)),
        )
        findings += [Finding(name, flaw, remedy) for flaw, remedy in flaws]
    return findings


def describe(connection: Connection) -> dict[str, Any]:
    """Our topics with their partitions and the settings that matter; who reads them, and how far they are.

    A dictionary as JSON has it. Raises BrokerError where the cluster cannot be asked, WrongTopics where one is missing.
    """
    lags = lag(connection)
    readers = {kind: role for role, kind in READS.items()}
    groups = {role: connection.group(role) for role in READS}
    with Cluster(connection) as cluster:
        members = cluster.members([*groups.values()])
        topics = cluster.topics(map(connection.topic, ALL))
        settings = cluster.settings(topics)
        extents = cluster.extents(
            [TopicPartition(name, one.number) for name, topic in topics.items() for one in topic.partitions]
        )
    described = []
    for kind in ALL:
        if (topic := topics.get(name := connection.topic(kind))) is None:
            continue
        partitions = []
        for one in topic.partitions:
            extent = extents[TopicPartition(name, one.number)]
            partition = {"partition": one.number, "leader": one.leader, "replicas": one.replicas}
            partition |= {"in_sync": one.in_sync, **extent._asdict()}
            if kind in readers:
                found = lags[readers[kind]][one.number]
                partition |= {"committed": found.committed, "waiting": found.waiting, "oldest": found.oldest}
            partitions.append(partition)
        matter = {setting: settings[name][setting] for setting in Layout().settings(kind, 1)}
        described.append({"topic": name, "id": str(topic.id), "settings": matter, "partitions": partitions})
    return {
        "topics": described,
        "groups": [
            {
                "role": role,
                "group": group,
                "waiting": sum(found.waiting for found in lags[role].values()),
                "members": [member._asdict() for member in members[group]],
            }
            for role, group in groups.items()
        ],
    }


_Flaws = Iterator[tuple[str, str]]


def _identity(kind: str, topic: Topic, data: Path, layout: Layout) -> _Flaws:
    """Partitions, and whether it is the topic that the data folder knows."""
    partitions = len(topic.partitions)
    known = registered(data, kind) if kind in KINDS else []
    if known:
        if (flaw := difference(known, Identity(topic.id, partitions))) is not None:
            yield flaw, "the number of partitions and the topic are for life; delete the topics and make them anew"
        elif known[-1].id != topic.id:
            yield (
                f"was made anew since this data folder met it ({known[-1].partitions} partitions then)",
                "start the workers and services again, and send again what was not indexed yet",
            )
    elif partitions != (wanted := layout.partitions_of(kind)):
        remedy = "delete it and make it with `gistream topics create`" + (
            "" if kind == DEAD_LETTERS else f", or set kafka_partitions to {partitions} before the first worker starts"
        )
        yield f"has {partitions} partitions and not {wanted}", remedy


def _placement(topic: Topic, copies: int, needed: int) -> _Flaws:
    """Where its records are, and whether they can be written now."""
    if few := [one.number for one in topic.partitions if len(one.replicas) < copies]:
        remedy = "move them with kafka-reassign-partitions, or set kafka_replication to what is meant"
        yield f"has fewer than {copies} copies of partitions {_listed(few)}", remedy
    if orphans := [one.number for one in topic.partitions if one.leader < 0]:
        yield f"has nobody who serves partitions {_listed(orphans)}", "start the brokers that are down"
    if behind := [one.number for one in topic.partitions if one.leader >= 0 and len(one.in_sync) < needed]:
        flaw = f"has fewer than the {needed} copies in sync that it needs of partitions {_listed(behind)}"
        yield flaw, "nothing can be written there; start the brokers that are down, or wait until they have caught up"


def _settings(connection: Connection, name: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> _Flaws:
    for setting, value in wanted.items():
        is_right = found[setting] == value
        if setting in _AT_LEAST:
            is_right = int(found[setting]) >= int(value) or (setting == "retention.ms" and found[setting] == "-1")
        if not is_right:
            remedy = (
                f"kafka-configs --bootstrap-server {connection.bootstrap} --alter --entity-type topics"
                f" --entity-name {name} --add-config {setting}={value}"
            )
            yield f"has {setting} {found[setting]} and not {value}", remedy


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
