"""Tests of looking ahead: it begins with what will be wanted, stops when there is enough, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from index.home import Home
from index.models.hashing import HashingEmbedder
from index.types import DocumentEvent, Extraction
from streams.ahead import MOST_BATCHES
from streams.applier import Pace
from streams.chunk import WHOLE
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline
from streams.rebuild import verify

from .stubs import PaidNoting

Text = tuple[str, str]


class Slow(PaidNoting):
    """Answers the passage `answered` waits for, and no other; `begun` lists texts in the order of their begin."""

    concurrency = 2

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.futures: dict[str, Future[Extraction]] = {}

    def begin(self, passage: Text) -> Future[Extraction]:
        self.begun.append(passage[1])
        future = self.futures[passage[1]] = Future[Extraction]()
        if len(self.futures) == 1:
            # The batch that is waited for; all others stay under way.
            future.set_result(self.extract([passage])[0])
        return future

    def release(self) -> None:
        """Answer everything that is under way."""
        for text, future in self.futures.items():
            if not future.done():
                future.set_result(self.extract([("", text)])[0])


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log.db") as log:
        yield log


def runner(log: Log, extractor: PaidNoting, batch: int = 1) -> Runner:
    pipeline = Pipeline(WHOLE, extractor, HashingEmbedder(16))
    return Runner(Home(log.database.path.parent), log, pipeline, pace=Pace(batch_events=batch))


def send(log: Log, *texts: str, namespace: str = "ada", **fields: object) -> None:
    log.append([DocumentEvent(namespace=namespace, id=text, text=text, **fields) for text in texts])  # type: ignore[arg-type]


def test_what_follows_is_begun_until_the_model_has_enough(log: Log) -> None:
    send(log, *"abcdefgh")
    extractor = Slow()
    with runner(log, extractor) as running:
        running.step()
        assert extractor.begun == ["a", *"bcde"[: len(extractor.begun) - 1]]
        assert 3 <= len(extractor.begun) <= 1 + 2 * extractor.concurrency
        extractor.release()


def test_other_namespaces_come_before_the_next_batch_of_the_same_one(log: Log) -> None:
    send(log, "a1", "a2", "a3")
    send(log, "b1", namespace="bob")
    send(log, "c1", namespace="cy")
    extractor = Slow()
    with runner(log, extractor) as running:
        running._ahead.look(["ada", "bob", "cy"])
        assert extractor.begun[:4] == ["a1", "b1", "c1", "a2"]
        extractor.release()


def test_only_so_many_batches_are_foreseen_where_nothing_is_left_to_read(log: Log) -> None:
    send(log, *(["same"] * 20))
    extractor = Slow()
    with runner(log, extractor) as running:
        running.step()
        lane = running._lanes.get("ada")
        assert lane is not None and len(lane.foreseen) <= MOST_BATCHES
        running.drain()
    assert extractor.begun == ["same"]


def test_an_event_that_an_earlier_one_beats_is_not_read_ahead(log: Log) -> None:
    for version, text in ((5, "new"), (3, "old"), (9, "newest")):
        log.append([DocumentEvent(namespace="ada", id="d", version=version, text=text)])
    extractor = Slow()
    with runner(log, extractor) as running:
        running.step()
        extractor.release()
        running.drain()
    assert sorted(extractor.begun) == ["new", "newest"]


def test_the_index_is_the_same_as_without(log: Log) -> None:
    for number in range(12):
        send(log, f"Ada met Bo {number % 6}.", f"Bo left Ada {number}.", namespace=f"n{number % 2}")
    extractor = PaidNoting()
    with runner(log, extractor, batch=3) as running:
        running.drain()
        home, pipeline = running.home, running._lanes._pipeline
    assert len(extractor.read) == len(set(extractor.read))
    for name in home.names():
        assert not list(verify(home, name, pipeline))


def test_what_goes_wrong_ahead_of_time_is_told_in_its_own_turn(log: Log) -> None:
    send(log, "a")
    send(log, "poison")
    send(log, "b")
    with runner(log, PaidNoting()) as running:
        running.drain()
        [letter] = running.letters.waiting()
    assert letter.id == "poison"
