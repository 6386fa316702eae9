"""The two roles of a worker without a Kafka: topics are lists, and what a worker would fetch is offered by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack
from uuid import UUID

from index.home import Home
from index.metrics import Metrics
from index.reader import Reader
from index.types import DocumentEvent
from streams.applier import Options, Pace
from streams.connection import DOCUMENTS, UNDERSTOOD
from streams.events import DEFAULT_LIMITS
from streams.letter import DeadLetter
from streams.pipeline import Pipeline
from streams.producer import Outgoing
from streams.register import Incarnation, Register
from streams.roles import applying, understanding
from streams.share import Role, Share
from streams.wire import Record, document_record, key_partition

PARTITIONS = 3
NOW = 1_700_000_000_000
SINCE = NOW * 1000
QUIET = Pace(batch_events=3, checkpoint_seconds=3600, clean_seconds=3600, mend_seconds=3600)

REGISTER = Register(
    Incarnation(kind=DOCUMENTS, number=1, topic="documents", id=UUID(int=1), partitions=PARTITIONS, since=SINCE),
    Incarnation(kind=UNDERSTOOD, number=1, topic="understood", id=UUID(int=2), partitions=PARTITIONS, since=SINCE),
)


@dataclass
class Box:
    """Dead letters in a list."""

    letters: list[DeadLetter] = field(default_factory=list)

    def put(self, letter: DeadLetter) -> int:
        self.letters.append(letter)
        return len(self.letters)


class Topic:
    """Partitions with their records; `skip` makes offsets jump, as compaction does."""

    def __init__(self) -> None:
        self.partitions: list[list[Record]] = [[] for _ in range(PARTITIONS)]
        self.moment = NOW
        """Milliseconds since 1970, of the next record."""

    def add(
        self,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
        skip: int = 0,
    ) -> int:
        records = self.partitions[partition]
        offset = (records[-1].offset + 1 if records else 0) + skip
        records.append(Record(partition, offset, self.moment, key, value, dict(headers)))
        self.moment += 1
        return offset

    def send(self, outgoing: Sequence[Outgoing]) -> None:
        """As a producer does."""
        for one in outgoing:
            assert one.partition is not None, "a role says where"
            self.add(one.partition, one.key, one.value, one.headers)

    def event(self, event: DocumentEvent, skip: int = 0) -> int:
        key, value = document_record(event)
        return self.add(key_partition(key, PARTITIONS), key, value, skip=skip)


class Stream:
    """A data folder, both topics, and shares that come and go. Steps are taken by hand, in this thread."""

    def __init__(self, folder: Path, pipeline: Pipeline) -> None:
        self.home = Home(folder)
        self.pipeline = pipeline
        self.documents, self.understood = Topic(), Topic()
        self.box = Box()
        self.metrics = Metrics()

    @property
    def understand(self) -> Role:
        # What a role needs of its producer is `send`.
        producer: object = self.understood
        return understanding(
            self.home,
            REGISTER,
            self.pipeline,
            self.box,
            producer,  # type: ignore[arg-type]
            self.metrics,
            DEFAULT_LIMITS,
        )

    def apply(self, **options: Unpack[Options]) -> Role:
        chosen: Options = {"pace": QUIET, **options}
        return applying(self.home, REGISTER, self.pipeline, self.box, DEFAULT_LIMITS, **chosen)

    def send(self, *ids: str, namespace: str = "ada", text: str = "Ada Moor met Bo Larsen at {id}.") -> None:
        for id in ids:
            self.documents.event(DocumentEvent(namespace=namespace, id=id, text=text.format(id=id)))

    def ids(self, namespace: str = "ada") -> set[str]:
        """Living documents of the newest snapshot; none where there is no such namespace."""
        if namespace not in self.home.names():
            return set()
        snapshot = Reader(self.home.incarnation(namespace)).snapshot
        rows = snapshot.dataset("documents").to_table(columns=["id", "deleted"]).to_pylist()
        return {row["id"] for row in rows if not row["deleted"]}


def fetch(share: Share, topic: Topic, most: int = 1 << 30) -> int:
    """Offer what a client would fetch now: behind the ledger, and nothing of partitions that are full."""
    came = 0
    for partition, ledger in share.ledgers.items():
        after = max(ledger.position, share.window.last(partition))
        for record in [one for one in topic.partitions[partition] if one.offset > after][:most]:
            if partition in share.window.full():
                break
            share.take(record, None)
            came += 1
    return came


def drain(share: Share, topic: Topic, turns: int = 1_000) -> None:
    """Fetch and step until everything of the topic is finished; fails after so many turns."""
    for _ in range(turns):
        came = fetch(share, topic)
        worked = share.work.step()  # type: ignore[attr-defined]
        share.settle()
        if not came and not worked and not len(share.window):
            return
    raise AssertionError(f"{len(share.window)} entries are not finished after {turns} turns")


def kill(share: Share) -> None:
    """What is left of an applying worker that was killed: files as they are, and locks that nobody holds."""
    lanes = share.work._lanes  # type: ignore[attr-defined]
    for name in lanes.names():
        lanes.leave(name)
