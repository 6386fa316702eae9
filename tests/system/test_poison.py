"""Poison in the stream: every such record ends among the dead letters as it came, and nothing behind it is held up."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from index.types import DocumentEvent
from streams.connection import DOCUMENTS, UNDERSTAND
from streams.letter import DeadLetter
from streams.letter_topic import TopicLetters
from streams.producer import Outgoing
from streams.roles import start_over
from streams.wire import document_record, key_partition
from tests.broker.cluster import Cluster
from tests.broker.installation import Installation
from tests.streams.poison import LIMITS, corpus
from tests.support import GISTREAM, variables, wait_until

PARTITIONS = 3
WAIT_SECONDS = 120.0


def good(number: int) -> DocumentEvent:
    return DocumentEvent(namespace="good", id=str(number), text=f"Ann Lee saw fox {number} in Paris.")


def gistream(installation: Installation, *arguments: str, stdin: str = "", code: int = 0, **settings: int) -> Any:
    """What a command says in JSON. `settings` hold for it, and not for the workers."""
    command = [*GISTREAM, *arguments, "--json"]
    given = installation.environment | variables(**settings)
    ended = subprocess.run(command, env=given, input=stdin, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert ended.returncode == code, ended.stderr
    return json.loads(ended.stdout)


def all_of(letters: TopicLetters) -> list[DeadLetter]:
    return letters.waiting(limit=10_000)


@pytest.mark.slow
def test_poison_of_every_kind_becomes_a_letter_and_stops_nothing(
    kafka: Cluster, kafka_prefix: str, tmp_path: Path
) -> None:
    settings = {"max_document_bytes": LIMITS.document_bytes, "max_metadata_bytes": LIMITS.metadata_bytes}
    installation = Installation(tmp_path, kafka.bootstrap, kafka_prefix, partitions=PARTITIONS, **settings)
    poison = corpus(seed=7)
    records = []
    for number, (_, key, value, headers) in enumerate(poison):
        records.append(Outgoing(DOCUMENTS, number % PARTITIONS, key, value, headers))
        # Something good is behind everything bad, in its own partition too.
        key, value = document_record(good(number))
        records.append(Outgoing(DOCUMENTS, key_partition(key, PARTITIONS), key, value))
    with installation.producer() as inbox, TopicLetters(inbox, lambda: inbox) as letters:
        offsets = inbox.send(records)
        with installation.worker(log=tmp_path / "worker.log"):
            wait_until(lambda: installation.documents() == len(poison), timeout=WAIT_SECONDS, what="the good events")
            wait_until(lambda: letters.count() == len(poison), timeout=WAIT_SECONDS, what="all letters")
            found = all_of(letters)
            topic = installation.register.documents
            sent = {
                (topic.source(number % PARTITIONS), offsets[2 * number]): (key, value)
                for number, (_, key, value, _) in enumerate(poison)
            }
            assert {
                (letter.source, letter.position): (letter.key, None if letter.is_tombstone else letter.payload)
                for letter in found
            } == sent
            assert all(letter.step == "decode" and letter.reason and letter.cut_from is None for letter in found)

            repaired = good(len(poison)).model_dump_json()
            first = str(found[0].number)
            answer = gistream(installation, "dead-letters", "replay", first, "--with", "-", stdin=repaired)
            assert answer["id"] == str(len(poison)) and installation.documents() == len(poison) + 1
            # What the command takes and the workers do not is not waited for in vain.
            large = good(0).model_copy(update={"text": "x" * (LIMITS.document_bytes + 1)}).model_dump_json()
            gistream(installation, "ingest", "good", "-", stdin=large, code=1, max_document_bytes=2**20)
            assert all_of(letters)[:-1] == found[1:]
            found = all_of(letters)

        start_over(installation.home, UNDERSTAND, installation.register)
        # Behind these, in each partition, everything was read once more.
        last = {key_partition(document_record(event)[0], PARTITIONS): event for event in map(good, range(1000, 1020))}
        inbox.append([*last.values()])
        with installation.worker(log=tmp_path / "worker.log"):
            held = len(poison) + 1 + PARTITIONS
            wait_until(lambda: installation.documents() == held, timeout=WAIT_SECONDS, what="the last events")
        assert all_of(letters) == found, "read again, they are the same letters"
