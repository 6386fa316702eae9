"""Carrying steps: in which order what becomes durable, and how much at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from index.types import DocumentEvent
from streams.feeds.base import Memory, Rejected, Step
from streams.feeds.deliver import BATCH, BATCH_CHARACTERS, Delivery, batches
from streams.letter import DeadLetter


class Diary:
    """An inbox, dead letters and a memory that write down what they were told, in its order."""

    def __init__(self) -> None:
        self.said: list[tuple[str, object]] = []

    def append(self, events: Sequence[DocumentEvent]) -> list[str]:
        self.said.append(("append", [event.id for event in events]))
        return [f"log:{number}" for number in range(len(events))]

    def put(self, letter: DeadLetter) -> int:
        self.said.append(("letter", (letter.source, letter.step, letter.namespace)))
        return 1

    def keep(self, steps: Sequence[Step]) -> None:
        self.said.append(("keep", {id: state for step in steps for id, state in step.items.items()}))


def upsert(id: str, text: str = "") -> DocumentEvent:
    return DocumentEvent(namespace="ns", id=id, text=text)


def test_a_new_document_is_announced_before_it_is_sent_and_known_after() -> None:
    diary, memory = Diary(), Memory(items={"old": "1"})
    delivery = Delivery(diary, diary, "ns", memory, diary.keep)
    flaw = Rejected("feed", "line 3", "broken", b"")
    steps = [
        Step((upsert("old"),), items={"old": "2"}),
        Step((upsert("new"),), (flaw,), items={"new": "1"}),
        Step((DocumentEvent(op="delete", namespace="ns", id="gone"),), items={"gone": None}),
    ]
    delivered = delivery.deliver(steps)
    assert diary.said == [
        ("keep", {"new": ""}),
        ("append", ["old", "new", "gone"]),
        ("letter", ("feed, line 3", "decode", "ns")),
        ("keep", {"old": "2", "new": "1", "gone": None}),
    ]
    assert (len(delivered.events), len(delivered.tokens), delivered.rejected) == (3, 3, 1)
    assert memory.items == {"old": "2", "new": "1"}


def test_nothing_is_written_for_nothing() -> None:
    diary = Diary()
    Delivery(diary, diary, "ns", Memory(), diary.keep).deliver([Step(), Step()])
    assert diary.said == []


def test_batches_are_bounded_in_number_and_text() -> None:
    assert [len(batch) for batch in batches(Step() for _ in range(2 * BATCH + 1))] == [BATCH, BATCH, 1]
    large = Step((upsert("a", "x" * BATCH_CHARACTERS),))
    assert [len(batch) for batch in batches([Step(), large, large, Step()])] == [2, 1, 1]
    assert list(batches([])) == []


def test_what_came_before_an_error_is_not_lost() -> None:
    def steps() -> Iterator[Step]:
        yield Step(cursor="x")
        raise ValueError("broken")

    came = batches(steps())
    assert next(came) == [Step(cursor="x")]
    with pytest.raises(ValueError, match="broken"):
        next(came)
