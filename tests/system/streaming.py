"""An installation over Kafka for tests: topics, workers as an operator runs them, and what must hold of both."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import GroupIdNotFoundError, NoError
from kafka.protocol.consumer import OffsetSpec
from kafka.structs import OffsetAndMetadata

from deploy.assembly import build_pipeline
from deploy.exits import Exit
from deploy.settings import Settings
from index.errors import BrokerUnavailable, NotFound
from index.manifest import Manifests
from index.reader import Reader
from index.token import Token
from index.types import DocumentEvent
from streams.cluster import Cluster
from streams.connection import DEAD_LETTERS, DOCUMENTS, UNDERSTOOD
from streams.position import NOTHING, positions
from streams.rebuild import verify
from streams.wire import document_event, document_record
from tests.broker.installation import Installation
from tests.broker.processes import lives
from tests.support import GISTREAM, ROOT, variables, wait_until

LOG: Final = "workers.log"
SESSION_SECONDS: Final = 3.0
PARTITIONS: Final = 4
PATIENCE: Final = 120.0
"""Seconds for what has to happen by itself: a session ends, a broker recovers, a process starts on a busy machine."""

ROLES: Final = {"understand": DOCUMENTS, "apply": UNDERSTOOD}
"""What each of them reads."""

Where = Literal["nothing", "beginning", "end"]
Row = tuple[int, bool, str, str]
"""Version, whether it is a tombstone, title and text of a document."""

_BEGUN = re.compile(r"(understand|apply) worker (\d+) begins, as process (\d+)")


class Supervised:
    """`gistream worker` in a process of its own, with the processes that it starts."""

    def __init__(self, number: int, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.number = number
        self._log = log
        with open(log, "wb") as said:
            self.process = subprocess.Popen(
                [*GISTREAM, "worker", *arguments], env=environment, stdout=said, stderr=said, cwd=ROOT
            )

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def children(self, role: str | None = None) -> list[int]:
        """Processes of its roles that live, the latest of each."""
        latest = {found[1]: int(found[3]) for found in _BEGUN.finditer(self.said)}
        return [pid for name, pid in latest.items() if role in (None, name) and lives(pid)]

    def process_of(self, role: str) -> int:
        """The process of a role, as soon as there is one."""
        wait_until(lambda: bool(self.children(role)), timeout=PATIENCE, what=f"a process that can {role}")
        return self.children(role)[0]

    def ready(self, roles: int = 2) -> None:
        """Wait until each of its roles has partitions."""
        wait_until(
            lambda: len(set(re.findall(r"(\w+) works on partitions", self.said))) >= roles or not self.lives,
            timeout=PATIENCE,
            what="a worker's partitions",
        )
        assert self.lives, self.said

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL, as a crash of the machine does to it; its processes die by themselves."""
        orphans = self.children()
        self.process.kill()
        self.process.wait()
        for pid in orphans:
            # One that is stopped cannot notice.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        wait_until(lambda: not any(map(lives, orphans)), timeout=PATIENCE, what=f"the end of the orphans {orphans}")


class Stream(Installation):
    """A data folder and its topics, with workers that come and go; every figure that a report needs."""

    def __init__(self, folder: Path, bootstrap: str, prefix: str, **settings: Any) -> None:
        given = {"worker_session_seconds": SESSION_SECONDS, **settings}
        super().__init__(folder / "data", bootstrap, prefix, partitions=PARTITIONS, **given)
        self.settings = Settings(data=self.home.data, kafka_bootstrap=bootstrap, kafka_prefix=prefix, **given)
        self.inbox = self.producer()
        self.workers: list[Supervised] = []
        self.sent: dict[str, DocumentEvent] = {}
        """What was acknowledged, by token."""
        self.refused = 0
        """Calls of the inbox that failed, and were repeated."""
        self.slowest = 0.0
        """Seconds that the longest acknowledgement took, repetitions included."""
        self.kills = 0
        self._started = 0
        self._folder = folder
        self._seen: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def configure(self, **settings: Any) -> None:
        """Give workers that are started from now on other settings."""
        self.environment |= variables(**settings)

    def start(self, role: str = "all", *options: str) -> Supervised:
        """Start one more worker."""
        self._started += 1
        log = self._folder / f"worker-{self._started}.log"
        worker = Supervised(self._started, ["--role", role, *options], self.environment, log)
        self.workers.append(worker)
        return worker

    def stop(self, *leaving: Supervised) -> None:
        """SIGTERM to all of these, which must end them well."""
        for worker in leaving:
            worker.process.terminate()
        for worker in leaving:
            code = worker.process.wait(PATIENCE)
            self.workers.remove(worker)
            # One that is told before it can listen ends at once, and one that has just been fenced says so.
            assert code in (Exit.OK, -signal.SIGTERM, Exit.BUSY), (
                f"worker {worker.number} ended with {code}: {worker.said[-4000:]}"
            )

    def kill(self, worker: Supervised) -> None:
        self.workers.remove(worker)
        worker.kill()
        self.kills += 1

    def kill_role(self, worker: Supervised, role: str) -> None:
        """SIGKILL of the process of one role, once there is one."""
        pid = worker.process_of(role)
        os.kill(pid, signal.SIGKILL)
        self.kills += 1
        wait_until(lambda: not lives(pid), timeout=PATIENCE, what=f"the end of process {pid}")

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.workers.clear()
        self.inbox.close()

    def send(self, events: Sequence[DocumentEvent]) -> list[str]:
        """Have events acknowledged, however often that takes."""
        started = time.monotonic()
        while True:
            try:
                tokens = self.inbox.append(events)
                break
            except BrokerUnavailable:
                self.refused += 1
                if time.monotonic() > started + PATIENCE:
                    raise
        self.slowest = max(self.slowest, time.monotonic() - started)
        self.sent |= dict(zip(tokens, events, strict=True))
        return tokens

    def wait_for_more_than(self, known: int) -> None:
        """Wait until more events than these were acknowledged, by somebody who sends them now."""
        wait_until(lambda: len(self.sent) > known, timeout=PATIENCE, what="an acknowledgement")

    def wait_for_some(self, tokens: Mapping[str, DocumentEvent]) -> None:
        """Wait until one of these is visible: then the others are being applied."""
        all_missing = self.missing(tokens).keys()
        wait_until(lambda: self.missing(tokens).keys() < all_missing or not all_missing, timeout=PATIENCE)

    def look(self) -> None:
        """Compare how far each namespace is with the last look: no position may ever move back."""
        for name in self.home.names():
            try:
                found = positions(self.home, name)
            except NotFound:
                continue
            for source, before in self._seen[name].items():
                now = found.get(source, NOTHING)
                assert now >= before, f"{source} of {name} moved back from {before} to {now}"
            self._seen[name] = dict(found)

    def missing(self, tokens: Mapping[str, DocumentEvent] | None = None) -> dict[str, str]:
        """By namespace and source, which acknowledged position is not visible yet, and how far it is; `tokens` are
        those that are asked for, all of them by default.
        """
        self.look()
        wanted: dict[tuple[str, str], int] = {}
        for token, event in list((self.sent if tokens is None else tokens).items()):
            place = Token.parse(token)
            key = event.namespace, place.source
            wanted[key] = max(place.position, wanted.get(key, NOTHING))
        return {
            f"{name} {source}:{position}": str(self._seen[name].get(source, NOTHING))
            for (name, source), position in wanted.items()
            if self._seen[name].get(source, NOTHING) < position
        }

    def settle(self, tokens: Mapping[str, DocumentEvent] | None = None, *, seconds: float = PATIENCE) -> float:
        """Wait until all that was acknowledged is visible; returns the seconds it took, and says what is missing."""
        started = time.monotonic()
        try:
            wait_until(lambda: not self.missing(tokens), timeout=seconds)
        except AssertionError:
            said = "\n".join(f"--- worker {one.number}\n{one.said[-3000:]}" for one in self.workers)
            raise AssertionError(
                f"not visible after {seconds} s, and how far that is: {self.missing(tokens)}\n{said}"
            ) from None
        return time.monotonic() - started

    def accepted(self) -> dict[str, dict[str, Row]]:
        """By namespace and document what `documents` says as a whole; of each acknowledged event the record is there.

        The newest version counts; one without version has the creation of the topic and its offset; of equal versions
        a delete.
        """
        documents = self.register.documents
        rows: defaultdict[str, dict[str, Row]] = defaultdict(dict)
        there: dict[str, tuple[bytes | None, bytes | None]] = {}
        consumer = KafkaConsumer(**self.connection.client(), enable_auto_commit=False)
        try:
            places = [TopicPartition(documents.topic, number) for number in range(documents.partitions)]
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends = consumer.end_offsets(places)
            while any(consumer.position(place) < ends[place] for place in places):
                for place, records in consumer.poll(timeout_ms=500).items():
                    for record in records:
                        there[str(Token(documents.source(place.partition), record.offset))] = record.key, record.value
                        event = document_event(record.key, record.value)
                        version = documents.since + record.offset if event.version is None else event.version
                        row = (version, event.op == "delete", event.title, event.text)
                        before = rows[event.namespace].get(event.id)
                        if before is None or row[:2] > before[:2]:
                            rows[event.namespace][event.id] = row
        finally:
            consumer.close()
        lost = [token for token, event in self.sent.items() if there.get(token) != document_record(event)]
        assert not lost, f"acknowledged and not in the topic: {lost[:10]}"
        return dict(rows)

    def held(self, name: str) -> dict[str, Row]:
        """By id every document of a namespace, tombstones included."""
        columns = ["id", "version", "deleted", "title", "text"]
        snapshot = Reader(self.home.incarnation(name)).snapshot
        rows = snapshot.dataset("documents").to_table(columns=columns).to_pylist()
        found = {row["id"]: (row["version"], row["deleted"], row["title"], row["text"]) for row in rows}
        assert len(found) == len(rows), f"{name} holds a document twice"
        return found

    def letters(self) -> int:
        """Records of the dead letters."""
        place = TopicPartition(self.connection.topic(DEAD_LETTERS), 0)
        with Cluster(self.connection) as cluster:
            return cluster.extents([place])[place].end

    def check(self) -> None:
        """Every namespace is what the history says, once; it got there without a step back, and leaves no trace."""
        accepted = self.accepted()
        assert set(accepted) == set(self.home.names())
        pipeline = build_pipeline(self.settings)
        for name, rows in accepted.items():
            held = self.held(name)
            wrong = [(id, held.get(id), rows.get(id)) for id in held | rows if held.get(id) != rows.get(id)]
            assert not wrong, f"{name} holds other documents than were sent: {wrong[:5]}"
            found = [*verify(self.home, name, pipeline)]
            assert not found, f"{name} is not what a rebuild makes: " + "\n".join(map(str, found[:20]))
            self._check_chain(name)

    def _check_chain(self, name: str) -> None:
        """Of the snapshots that stand none is behind the one before it."""
        manifests, before = Manifests(self.home.incarnation(name) / "manifests"), dict[str, int]()
        for number in manifests.numbers():
            found = manifests.read(number).positions
            back = {source: position for source, position in before.items() if found.get(source, NOTHING) < position}
            assert not back, f"snapshot {number} of {name} is behind the one before it: {back}"
            before = dict(found)

    def commit(self, where: Where) -> None:
        """Set what Kafka holds of both groups, once their workers are gone: to nothing, to the beginning or to the end.

        Members that left without a word are members until their session ends.
        """
        with closing(KafkaAdminClient(**self.connection.client())) as admin:
            for role, kind in ROLES.items():
                places = [TopicPartition(self.connection.topic(kind), number) for number in range(PARTITIONS)]
                spec = OffsetSpec.LATEST if where == "end" else OffsetSpec.EARLIEST
                found = admin.list_partition_offsets(dict.fromkeys(places, spec))
                offsets = {place: OffsetAndMetadata(found[place].offset, "", -1) for place in places}
                commit = partial(_committed, admin, self.connection.group(role), offsets, where)
                wait_until(commit, timeout=PATIENCE, what=f"the offsets of the {role} workers")


@contextmanager
def installation(folder: Path, bootstrap: str, prefix: str, seed: int, **settings: Any) -> Iterator[Stream]:
    """A stream without workers; whatever fails in the block names its seed and where its data and logs lie."""
    stream = Stream(folder, bootstrap, prefix, **{"embedding_dimensions": 32, **settings})
    try:
        yield stream
    except BaseException as error:
        stream.close()
        kept = ROOT / "build" / "failed" / f"{folder.name}-{prefix}"
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("kafka"))
        error.add_note(f"seed {seed}; data folder and logs of the workers: {kept}")
        raise
    finally:
        stream.close()


def _committed(admin: Any, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], where: Where) -> bool:
    if where == "nothing":
        return {*admin.delete_groups([group]).values()} <= {"OK", GroupIdNotFoundError.__name__}
    return {*admin.alter_group_offsets(group, offsets).values()} == {NoError}
