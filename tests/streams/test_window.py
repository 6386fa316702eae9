"""Tests of the window: whatever is finished in whatever order, a partition is told of without gaps, and once."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.types import Accepted, DocumentEvent
from streams.position import NOTHING
from streams.window import Entry, Window

from ..support import wait_until

PARTITIONS = (0, 1, 5)
NAMES = {0: ("ada", "bob"), 1: ("cy",), 5: ("dee", "eve")}
"""All events of a namespace are in one partition."""
MOST_EVENTS, MOST_BYTES = 6, 100


def entry(partition: int, offset: int, name: str | None = "ada", size: int = 1) -> Entry:
    accepted = None
    if name is not None:
        accepted = Accepted(offset, 0, DocumentEvent(namespace=name, id=str(offset), text=""))
    return Entry(partition, offset, size, accepted)


class Naive:
    """The window beside a list of all that came, in which nothing is ever removed."""

    def __init__(self) -> None:
        self.window = Window(MOST_EVENTS, MOST_BYTES)
        self.came: list[Entry] = []
        self.names: dict[int, str | None] = {}
        """Namespaces by identity of the entry."""
        self.finished: set[int] = set()
        self.taken: set[int] = set()
        self.settled: set[int] = set()

    def waiting(self, name: str) -> list[Entry]:
        return [one for one in self.came if self.names[id(one)] == name and id(one) not in self.finished]

    def of(self, partition: int) -> list[Entry]:
        return [one for one in self.came if one.partition == partition]

    def offer(self, partition: int, step: int, which: int, size: int) -> None:
        """Gaps where `step` is more than 1; redelivered where it is less."""
        last = max((one.offset for one in self.of(partition)), default=NOTHING)
        name = (*NAMES[partition], None)[min(which, len(NAMES[partition]))]
        one = entry(partition, max(0, last + step), name, size)
        self.window.offer(one)
        if one.offset > last:
            self.came.append(one)
            self.names[id(one)] = name
            if name is None:
                self.finished.add(id(one))

    def finish(self, name: str, count: int) -> None:
        done = self.waiting(name)[:count]
        self.window.finish(name, len(done))
        self.finished.update(map(id, done))

    def finish_up_to(self, name: str, offset: int) -> None:
        self.finished.update(id(one) for one in self.waiting(name) if one.offset <= offset)
        self.window.finish_up_to(name, offset)

    def take_done(self) -> None:
        expected: dict[int, list[Entry]] = {}
        for partition in PARTITIONS:
            for one in self.of(partition):
                if id(one) in self.taken:
                    continue
                if id(one) not in self.finished:
                    break
                expected.setdefault(partition, []).append(one)
        assert self.window.take_done() == expected
        self.taken.update(id(one) for done in expected.values() for one in done)

    def settle(self, durable: dict[str, int] | None) -> None:
        expected = {}
        for partition in PARTITIONS:
            for one in self.of(partition):
                if id(one) in self.settled:
                    continue
                name = self.names[id(one)]
                is_durable = name is None or durable is None or durable.get(name, NOTHING) >= one.offset
                if id(one) not in self.taken or not is_durable:
                    break
                expected[partition] = one.offset
                self.settled.add(id(one))
        assert self.window.settled(durable) == expected

    def peek(self, name: str, start: int, most: int) -> None:
        assert self.window.peek(name, start, most) == self.waiting(name)[start : start + most]

    def names_wait(self) -> None:
        assert set(self.window.names()) == {
            name for name in self.names.values() if name is not None and self.waiting(name)
        }

    def what_is_held_is_bounded(self) -> None:
        held = {partition: [one for one in self.of(partition) if id(one) not in self.taken] for partition in PARTITIONS}
        assert len(self.window) == sum(map(len, held.values()))
        fill = {
            partition: max(len(held[partition]) / MOST_EVENTS, sum(one.size for one in held[partition]) / MOST_BYTES)
            for partition in {one.partition for one in self.came}
        }
        assert self.window.full() == {partition for partition, part in fill.items() if part >= 1}
        assert self.window.roomy() == {partition for partition, part in fill.items() if part <= 0.5}

    def the_last_that_came_is_known(self) -> None:
        for partition in PARTITIONS:
            assert self.window.last(partition) == max((one.offset for one in self.of(partition)), default=NOTHING)


partitions = st.sampled_from([0, 0, *PARTITIONS])
every_name = [name for names in NAMES.values() for name in names]
names = st.sampled_from(["ada", "bob", *every_name])
offers = st.tuples(
    st.just(Naive.offer), partitions, st.sampled_from([1, 1, 1, 2, 3, 0, -2]), st.integers(0, 2), st.integers(0, 40)
)
steps = st.one_of(
    offers,
    offers,
    st.tuples(st.just(Naive.finish), names, st.integers(0, 3)),
    st.tuples(st.just(Naive.finish_up_to), names, st.integers(-1, 12)),
    st.tuples(st.just(Naive.take_done)),
    st.tuples(
        st.just(Naive.settle), st.none() | st.dictionaries(st.sampled_from(every_name), st.integers(-1, 12), min_size=2)
    ),
    st.tuples(st.just(Naive.peek), names, st.integers(0, 4), st.integers(0, 4)),
)


@given(st.lists(steps, min_size=20, max_size=60))
def test_it_is_the_list_of_what_came(steps: list[tuple[Any, ...]]) -> None:
    naive = Naive()
    for step, *arguments in steps:
        step(naive, *arguments)
        naive.names_wait()
        naive.what_is_held_is_bounded()
        naive.the_last_that_came_is_known()


def test_news_is_told_once_and_says_how_far() -> None:
    window = Window()
    for one in (entry(0, 3), entry(0, 4, "bob"), entry(0, 7), entry(0, 8, None)):
        window.offer(one)
    assert window.news() == {"ada": 7, "bob": 4}
    assert window.news() == {}
    window.offer(entry(0, 9, "bob"))
    window.finish("bob", 2)
    assert window.news() == {}, "what is finished by then is no news"


def test_what_is_finished_behind_what_is_not_has_to_wait() -> None:
    window = Window()
    entries = [entry(0, 1), entry(0, 2, "bob"), entry(0, 4, None), entry(0, 5)]
    for one in entries:
        window.offer(one)
    window.finish("bob", 1)
    assert window.take_done() == {} and window.settled() == {}
    window.offer(entry(0, 6, None))
    assert window.take_done() == {}
    window.finish("ada", 1)
    assert window.take_done() == {0: entries[:3]} and window.take_done() == {}
    assert window.settled({"bob": 9}) == {}, "what comes first is not durable"
    assert window.settled({"ada": 9}) == {0: 1}
    assert window.settled({"bob": 9}) == {0: 4}


def test_what_is_acknowledged_is_not_held_until_it_is_durable() -> None:
    window = Window()
    one = entry(0, 1)
    window.offer(one)
    window.finish("ada", 1)
    assert window.take_done() == {0: [one]}
    one.accepted = None
    assert window.settled({"ada": 0}) == {}, "its namespace is still known"
    assert window.settled({"ada": 1}) == {0: 1}


@pytest.mark.parametrize("tell", [Window.wake, lambda window: window.offer(entry(0, 1))], ids=["wake", "offer"])
def test_what_came_since_the_last_wait_ends_the_next(tell) -> None:  # type: ignore[no-untyped-def]
    window = Window()
    tell(window)
    window.wait(timeout=3600)
    waiting = threading.Thread(target=window.wait, args=(3600,), daemon=True)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive(), "it is not told twice of the same"
    window.wake()
    waiting.join(10)
    assert not waiting.is_alive()


def test_threads_lose_nothing_and_finish_everything_once() -> None:
    window, each = Window(), 400
    acknowledged: Counter[tuple[int, int]] = Counter()
    settled: dict[int, int] = {}
    offering = threading.Event()
    offering.set()

    def offer(partition: int) -> None:
        for offset in range(each):
            window.offer(entry(partition, offset, NAMES[partition][offset % len(NAMES[partition])]))

    def work(name: str) -> None:
        while offering.is_set() or name in window.names():
            if found := window.peek(name, 0, 7):
                window.finish(name, len(found))
            window.wait(0.001)

    def settle() -> None:
        while offering.is_set() or len(window):
            for partition, done in window.take_done().items():
                for one in done:
                    acknowledged[partition, one.offset] += 1
            for partition, offset in window.settled().items():
                assert offset > settled.get(partition, NOTHING)
                settled[partition] = offset

    offerers = [threading.Thread(target=offer, args=(partition,)) for partition in PARTITIONS]
    others = [threading.Thread(target=work, args=(name,)) for names in NAMES.values() for name in names]
    others.append(threading.Thread(target=settle))
    for thread in (*others, *offerers):
        thread.start()
    for thread in offerers:
        thread.join(60)
    offering.clear()
    for thread in others:
        thread.join(60)
    assert acknowledged == Counter({(partition, offset): 1 for partition in PARTITIONS for offset in range(each)})
    wait_until(lambda: settled == dict.fromkeys(PARTITIONS, each - 1), what="the last entry of each partition")
