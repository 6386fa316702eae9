"""Staleness told from looks never says less than the truth, which a simulation of both topics knows."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import marks
from streams.marks import Look, Marks

PARTITIONS = 2


@dataclass
class Stream:
    """Two topics of two partitions, how far they are worked off, and a clock of whole seconds."""

    documents: list[list[tuple[int, int]]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    """By partition, of each event its moment and the partition of `understood` that it is for."""
    understood: list[list[int]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    published: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    applied: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    now: int = 0

    def accept(self, place: int, target: int) -> None:
        self.documents[place].append((self.now, target))

    def understand(self, place: int) -> None:
        if self.published[place] < len(self.documents[place]):
            moment, target = self.documents[place][self.published[place]]
            self.understood[target].append(moment)
            self.published[place] += 1

    def apply(self, place: int) -> None:
        self.applied[place] = min(self.applied[place] + 1, len(self.understood[place]))

    def look(self) -> Look:
        return Look(
            self.now, [*self.published], [*self.applied], [*map(len, self.documents)], [*map(len, self.understood)]
        )

    def oldest(self, place: int, offset: int) -> int | None:
        """Moment of the oldest event for a partition of `understood` that a snapshot up to `offset` lacks."""
        waiting = self.understood[place][offset:]
        for partition, events in enumerate(self.documents):
            waiting += [moment for moment, target in events[self.published[partition] :] if target == place]
        return min(waiting, default=None)


_ACTS = st.lists(
    st.tuples(
        st.sampled_from(["accept", "understand", "apply", "look", "wait"]),
        st.integers(0, PARTITIONS - 1),
        st.integers(0, PARTITIONS - 1),
    ),
    max_size=40,
)


@pytest.mark.parametrize("most", [4, 1000])
@given(acts=_ACTS)
def test_it_never_says_less_than_the_truth(most: int, acts: list[tuple[str, int, int]]) -> None:
    stream, found = Stream(), Marks()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marks, "MOST", most)
        for act, place, target in acts:
            match act:
                case "accept":
                    stream.accept(place, target)
                case "understand":
                    stream.understand(place)
                case "apply":
                    stream.apply(place)
                case "wait":
                    stream.now += 1
                case _:
                    found.learn(stream.look())
            for partition in range(PARTITIONS):
                for offset in range(stream.applied[partition] + 1):
                    newest = offset == stream.applied[partition]
                    moment = found.reflected(partition, offset, is_newest=newest)
                    oldest = stream.oldest(partition, offset)
                    assert moment is None or oldest is None or moment <= oldest
            everywhere = found.everywhere()
            behind = [stream.oldest(partition, stream.applied[partition]) for partition in range(PARTITIONS)]
            assert everywhere is None or all(oldest is None or everywhere <= oldest for oldest in behind)


def test_with_nothing_left_it_is_the_time_of_the_last_look() -> None:
    stream, found = Stream(), Marks()
    assert found.everywhere() is None and found.reflected(0, is_newest=True) is None
    found.learn(stream.look())
    stream.now = 7
    found.learn(stream.look())
    assert found.everywhere() == found.reflected(0) == 7


def test_it_follows_an_event_through_both_topics() -> None:
    stream, found = Stream(), Marks()
    found.learn(stream.look())
    stream.now = 1
    stream.accept(1, 0)
    for stream.now in (2, 3):
        found.learn(stream.look())
    assert found.everywhere() == 0, "it may be for any partition"
    stream.understand(1)
    stream.now = 4
    found.learn(stream.look())
    assert found.reflected(1, is_newest=True) == 4, "it is not for this one"
    assert found.reflected(0, is_newest=True) == 0
    stream.apply(0)
    stream.now = 5
    found.learn(stream.look())
    assert found.reflected(0, is_newest=True) == 5
    assert found.reflected(0, 1) == 5, "its snapshot reflects it, whatever was committed since"
    assert found.reflected(0, 0) == 0, "a snapshot from before does not"


def test_what_was_waiting_at_the_first_look_is_of_unknown_age() -> None:
    stream, found = Stream(), Marks()
    stream.accept(0, 0)
    stream.understand(0)
    stream.now = 9
    found.learn(stream.look())
    assert found.reflected(0, is_newest=True) is None
    assert found.reflected(1, is_newest=True) == 9
    stream.apply(0)
    found.learn(stream.look())
    assert found.everywhere() == 9


def test_it_remembers_a_bounded_number_of_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST", 50)
    stream, found = Stream(), Marks()
    found.learn(stream.look())
    for stream.now in range(1, 5 * marks.MOST):
        stream.accept(0, 0)
        found.learn(stream.look())
    assert len(found._accepted) <= marks.MOST
    stream.published, stream.understood[0] = [len(stream.documents[0]), 0], [0]
    found.learn(stream.look())
    assert not found._accepted
    assert found.reflected(0, is_newest=True) == 0
