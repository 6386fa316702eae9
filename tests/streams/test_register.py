"""The topics that a data folder knows: who has which name, and versions that never go back."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import Torn, WrongTopics
from index.token import Token
from streams.connection import DOCUMENTS, UNDERSTOOD, Connection
from streams.register import SPAN, Identity, Incarnation, Register, registered

CONNECTION = Connection("nowhere:9092", prefix="test-")
FIRST, SECOND, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)


def opened(data: Path, id: UUID = FIRST, partitions: int = 4, *, now: int = 10**15) -> Register:
    def identities(connection: Connection) -> Mapping[str, Identity]:
        return {DOCUMENTS: Identity(id, partitions), UNDERSTOOD: Identity(OTHER, 2)}

    return Register.open(data, CONNECTION, identities, clock=lambda: now)


def test_a_topic_is_registered_once(tmp_path: Path) -> None:
    register = opened(tmp_path)
    documents = register.documents
    assert (documents.topic, documents.id, documents.partitions) == ("test-documents", FIRST, 4)
    assert documents.source(2) == "documents-2"
    assert register.understood.source(0) == "understood-0"
    assert documents.version(7) == 10**15 + 7
    assert opened(tmp_path, now=10**15 + 5) == register
    assert registered(tmp_path, DOCUMENTS) == [documents]


def test_a_topic_that_was_made_anew_has_other_names_and_greater_versions(tmp_path: Path) -> None:
    former = opened(tmp_path).documents
    register = opened(tmp_path, SECOND, 3, now=10**15 + 60)
    documents = register.documents
    assert documents.source(2) == "documents~2-2"
    assert documents.version(0) > former.version(SPAN - 1)
    assert opened(tmp_path, SECOND, 3, now=2 * 10**15).documents == documents
    assert register.incarnation("documents~2-2") == documents
    assert register.incarnation("documents-2") is None
    assert register.incarnation("understood-1") == register.understood
    assert register.incarnation("log") is None
    later = opened(tmp_path, UUID(int=9), 3, now=3 * 10**15).documents
    assert (later.source(0), later.since) == ("documents~3-0", 3 * 10**15)


def test_other_partitions_are_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    with pytest.raises(WrongTopics, match=r"test-documents has 5 partitions, and had 4 .* topics create"):
        opened(tmp_path, partitions=5)


def test_a_topic_that_was_replaced_does_not_come_back(tmp_path: Path) -> None:
    opened(tmp_path)
    opened(tmp_path, SECOND)
    with pytest.raises(WrongTopics, match=r"test-documents was replaced"):
        opened(tmp_path)


def test_a_missing_topic_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongTopics, match=r"there is no topic test-documents\. .*topics create"):
        Register.open(tmp_path, CONNECTION, lambda _: {})


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    opened(tmp_path)
    (tmp_path / "topics" / "documents.1.json").write_text("{")
    with pytest.raises(Torn, match=r"documents\.1\.json is damaged"):
        opened(tmp_path)


def test_whoever_comes_at_the_same_moment_gets_the_same(tmp_path: Path) -> None:
    at_once, registers = threading.Barrier(8), list[Register]()

    def open_one(number: int) -> None:
        at_once.wait(30)
        registers.append(opened(tmp_path, now=10**15 + number))

    threads = [threading.Thread(target=open_one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(registers) == 8
    assert len({register.documents.since for register in registers}) == 1
    assert sorted(path.name for path in (tmp_path / "topics").iterdir()) == ["documents.1.json", "understood.1.json"]


@given(
    number=st.integers(1, 30), partition=st.integers(0, 300), other=st.integers(1, 30), partitions=st.integers(1, 300)
)
def test_a_name_is_read_back_by_its_own_incarnation_only(
    number: int, partition: int, other: int, partitions: int
) -> None:
    topic = Incarnation(kind=DOCUMENTS, number=number, topic="x", id=FIRST, partitions=partitions, since=0)
    source = topic.source(partition)
    assert Token.parse(f"{source}:5") == (source, 5)
    assert topic.partition(source) == (partition if partition < partitions else None)
    another = topic.model_copy(update={"number": other})
    assert (another.partition(source) is not None) == (number == other and partition < partitions)
    for wrong in (f"understood-{partition}", f"documents-0{partition}", f"{source} ", "documents-", "documents", "log"):
        assert topic.partition(wrong) is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**42)), max_size=8))
def test_versions_never_go_back(tmp_path_factory: pytest.TempPathFactory, history: list[tuple[int, int]]) -> None:
    """Whatever the clock says, and however many events an incarnation had."""
    data, last = tmp_path_factory.mktemp("data"), -1
    for number, (unused, now) in enumerate(history, 1):
        documents = opened(data, UUID(int=number), now=now).documents
        assert documents.number == number
        assert documents.version(0) > last
        last = documents.version(SPAN - 1 - unused)
