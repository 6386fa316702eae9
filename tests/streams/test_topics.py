"""Our topics: made once, compared with what they must be, and described."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from index.errors import BrokerRefused, WrongTopics
from index.types import DocumentEvent
from streams import topics
from streams.cluster import Cluster as Asked
from streams.cluster import Partition, Topic, identities
from streams.connection import DEAD_LETTERS, DOCUMENTS, UNDERSTOOD, Connection
from streams.producer import KafkaInbox
from streams.register import Identity, Register
from streams.topics import Layout, check, create, describe
from streams.wire import most_bytes
from tests.broker.cluster import Cluster
from tests.support import wait_until

from .kafka_topics import LAYOUT, LIMITS, registered


@pytest.fixture
def connection(kafka: Cluster, kafka_prefix: str) -> Connection:
    return Connection(kafka.bootstrap, prefix=kafka_prefix)


def findings(connection: Connection, data: Path, layout: Layout = LAYOUT) -> dict[str, str]:
    """What is found, by the topic's kind and what it is about; each on one line, with a remedy."""
    found = check(connection, data, layout)
    assert all(finding.remedy and "\n" not in str(finding) for finding in found)
    return {finding.topic.removeprefix(connection.prefix): finding.flaw for finding in found}


def test_what_was_made_is_right_and_is_not_made_again(connection: Connection, tmp_path: Path) -> None:
    assert create(connection, LAYOUT) == [connection.topic(kind) for kind in topics.ALL]
    assert findings(connection, tmp_path) == {}
    Register.open(tmp_path, connection, identities)
    assert create(connection, LAYOUT) == []
    assert findings(connection, tmp_path) == {}
    with Asked(connection) as cluster:
        names = [connection.topic(kind) for kind in topics.ALL]
        made, settings = cluster.topics(names), cluster.settings(names)
    documents, understood, letters = names
    assert [len(made[name].partitions) for name in names] == [3, 3, 1]
    assert [settings[name]["cleanup.policy"] for name in names] == ["compact", "delete", "compact"]
    assert settings[documents]["max.message.bytes"] == str(most_bytes(DOCUMENTS, LIMITS)) == str(2 * 110_000 + 2**16)
    assert settings[letters]["max.message.bytes"] == str(most_bytes(DEAD_LETTERS, LIMITS))
    assert settings[understood]["retention.ms"] == str(7 * 24 * 3_600_000)


def test_what_is_missing_is_found_and_made(connection: Connection, tmp_path: Path) -> None:
    with Asked(connection) as cluster:
        assert cluster.create(connection.topic(DOCUMENTS), 3, 1, LAYOUT.settings(DOCUMENTS, 1))
        assert not cluster.create(connection.topic(DOCUMENTS), 3, 1, {})
    assert findings(connection, tmp_path) == {UNDERSTOOD: "is missing", DEAD_LETTERS: "is missing"}
    with pytest.raises(WrongTopics, match=r"there is no topic .*understood"):
        Register.open(tmp_path, connection, identities)
    with pytest.raises(WrongTopics, match=r"there is no topic .*understood"):
        describe(connection)
    assert create(connection, LAYOUT) == [connection.topic(UNDERSTOOD), connection.topic(DEAD_LETTERS)]
    assert findings(connection, tmp_path) == {}


def test_what_the_cluster_cannot_hold_is_refused(connection: Connection) -> None:
    with pytest.raises(BrokerRefused, match=r"creating the topic .*documents: .*InvalidReplicationFactorError"):
        create(connection, Layout(replication=3))


@pytest.mark.parametrize(
    ("kind", "setting", "value", "is_right"),
    [
        (DOCUMENTS, "cleanup.policy", "delete", False),
        (DOCUMENTS, "message.timestamp.type", "CreateTime", False),
        (DOCUMENTS, "max.message.bytes", "1000", False),
        (DOCUMENTS, "max.message.bytes", "1000000", True),
        (DOCUMENTS, "delete.retention.ms", "86400000", False),
        (DOCUMENTS, "min.compaction.lag.ms", "0", False),
        (UNDERSTOOD, "retention.ms", "3600000", False),
        (UNDERSTOOD, "retention.ms", "-1", True),
        (DEAD_LETTERS, "cleanup.policy", "compact,delete", False),
    ],
)
def test_a_setting_that_was_changed_is_found(kind: str, setting: str, value: str, is_right: bool) -> None:
    wanted = LAYOUT.settings(kind, 1)
    found = list(topics._settings(Connection("a:1"), kind, wanted | {setting: value}, wanted))
    if is_right:
        assert found == []
    else:
        [(flaw, remedy)] = found
        assert flaw == f"has {setting} {value} and not {wanted[setting]}"
        assert remedy.startswith("kafka-configs --bootstrap-server a:1 --alter")
        assert remedy.endswith(f"--entity-name {kind} --add-config {setting}={wanted[setting]}")


def test_the_remedy_of_a_setting_is_the_one(connection: Connection, tmp_path: Path) -> None:
    create(connection, LAYOUT)
    admin = KafkaAdminClient(**connection.client())
    try:
        admin.alter_configs([ConfigResource("topic", connection.topic(DOCUMENTS), {"cleanup.policy": "delete"})])
    finally:
        admin.close()
    assert findings(connection, tmp_path) == {DOCUMENTS: "has cleanup.policy delete and not compact"}


def test_where_records_are_is_looked_at() -> None:
    whole = Partition(0, leader=1, replicas=(1, 2, 3), in_sync=(1, 2, 3))
    behind = Partition(1, leader=1, replicas=(1, 2, 3), in_sync=(1,))
    orphan = Partition(2, leader=-1, replicas=(1, 2, 3), in_sync=())
    few = Partition(3, leader=1, replicas=(1, 2), in_sync=(1, 2))

    def flaws(*partitions: Partition) -> list[str]:
        return [flaw for flaw, _ in topics._placement(Topic(UUID(int=1), partitions), 3, 2)]

    assert flaws(whole) == []
    assert flaws(whole, behind, orphan, few) == [
        "has fewer than 3 copies of partitions 3",
        "has nobody who serves partitions 2",
        "has fewer than the 2 copies in sync that it needs of partitions 1",
    ]


def test_three_brokers_hold_three_copies_and_need_two() -> None:
    assert [LAYOUT.copies(brokers) for brokers in (1, 2, 3, 5)] == [1, 1, 3, 3]
    assert Layout(replication=2).copies(5) == 2
    assert [LAYOUT.settings(DOCUMENTS, copies)["min.insync.replicas"] for copies in (1, 2, 3)] == ["1", "1", "2"]


def test_other_topics_than_the_folder_knows_are_found(connection: Connection, tmp_path: Path) -> None:
    create(connection, LAYOUT)
    assert findings(connection, tmp_path, Layout(partitions=4, limits=LIMITS)) == {
        DOCUMENTS: "has 3 partitions and not 4",
        UNDERSTOOD: "has 3 partitions and not 4",
    }
    former = Register.open(tmp_path, connection, identities)
    # Once the folder knows them, the setting has nothing to say any more.
    assert findings(connection, tmp_path, Layout(partitions=4, limits=LIMITS)) == {}
    admin = KafkaAdminClient(**connection.client())
    try:
        admin.create_partitions({connection.topic(UNDERSTOOD): 5})
        admin.delete_topics([connection.topic(DOCUMENTS)])
    finally:
        admin.close()
    with Asked(connection) as cluster:
        # The cluster forgets a topic a moment after it says so.
        wait_until(lambda: not cluster.topics([connection.topic(DOCUMENTS)]))
    create(connection, LAYOUT)
    assert findings(connection, tmp_path) == {
        DOCUMENTS: "was made anew since this data folder met it (3 partitions then)",
        UNDERSTOOD: "has 5 partitions, and had 3 when this data folder met it",
    }
    with pytest.raises(WrongTopics, match="understood has 5 partitions, and had 3"):
        Register.open(tmp_path, connection, identities)

    def as_before(connection: Connection) -> dict[str, Identity]:
        return identities(connection) | {UNDERSTOOD: Identity(former.understood.id, 3)}

    documents = Register.open(tmp_path, connection, as_before).documents
    assert documents.source(0) == "documents~2-0"
    assert documents.since > former.documents.since


def test_a_description_is_json(connection: Connection, tmp_path: Path) -> None:
    with KafkaInbox(connection, registered(connection, tmp_path), LIMITS) as inbox:
        inbox.append([DocumentEvent(namespace="notes", id="a")])
    described = json.loads(json.dumps(describe(connection)))
    documents, understood, letters = described["topics"]
    assert documents["topic"] == connection.topic(DOCUMENTS)
    assert sum(one["end"] for one in documents["partitions"]) == 1
    assert sum(one["waiting"] for one in documents["partitions"]) == 1
    assert documents["partitions"][0] | {"end": 0, "waiting": 0, "oldest": None} == {
        "partition": 0,
        "leader": 1,
        "replicas": [1],
        "in_sync": [1],
        "begin": 0,
        "end": 0,
        "committed": None,
        "waiting": 0,
        "oldest": None,
    }
    assert understood["settings"]["cleanup.policy"] == "delete"
    assert "waiting" not in letters["partitions"][0]
    assert [(group["role"], group["waiting"], group["members"]) for group in described["groups"]] == [
        ("understand", 1, []),
        ("apply", 0, []),
    ]
