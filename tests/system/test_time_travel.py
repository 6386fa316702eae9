"""What was answered from a snapshot is answered as of it, whatever came later, until it is gone and says so."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings

from index import maintenance
from index.errors import SnapshotGone
from index.history import When, standing
from index.home import Home
from index.maintenance import Retention
from index.manifest import Manifests, now
from index.metrics import Metrics
from index.snapshot import Snapshot
from index.types import DocumentEvent
from query.filters import Condition, Filter
from query.history import History
from query.readers import Readers
from query.retrieve import MODES, retrieve
from streams.local import Runner
from streams.log import Log

from .histories import NAMESPACE, SENTENCES, Happen, Step, histories
from .test_incremental_equals_rebuild import COMPACT, GONE, PIPELINE, REFRESH, STEP, sent
from .test_incremental_equals_rebuild import History as Happening

QUESTIONS = ("Who repaired the Amber Lock?", "Port Ellery")
FILTERS = (Filter(), Filter(where={"shelf": Condition(at_least=2)}))


def answers(snapshot: Snapshot, questions: Sequence[str] = QUESTIONS) -> list[Any]:
    """All that every mode says, explanations and the number of the snapshot included."""
    return [
        retrieve(
            snapshot, PIPELINE.embedder, text, mode=mode, k=4, eligible=filter.mask(snapshot), with_explanation=True
        ).model_dump()
        for text in questions
        for filter in FILTERS
        for mode in MODES
    ]


def check(folder: Path, steps: Sequence[Step]) -> None:
    happening = Happening(folder)
    try:
        readers = Readers(happening.home, Metrics())
        history = History(readers, Metrics(), capacity=2)
        told: dict[int, Any] = {}
        for step in steps:
            happening.happen(step)
            if NAMESPACE not in happening.home.names():
                continue
            # A reader that always opens anew, so that the one which goes back has not seen every snapshot.
            newest = Readers(happening.home, Metrics()).snapshot(NAMESPACE)
            told.setdefault(newest.manifest.number, answers(newest))
            if step == REFRESH:
                readers.refresh(NAMESPACE)
        kept = Manifests(happening.home.incarnation(NAMESPACE) / "manifests").numbers() if told else []
        for number, expected in [*told.items(), *reversed(told.items())]:
            if number in kept:
                assert answers(history.snapshot(NAMESPACE, number)) == expected
            else:
                try:
                    history.snapshot(NAMESPACE, number)
                except SnapshotGone:
                    continue
                raise AssertionError(f"snapshot {number} was cleaned away and answers")
    finally:
        happening.close()


@given(histories)
@example([sent("a", 0), STEP, sent("b", 1), STEP, COMPACT, GONE, STEP, Happen("merge"), sent("a", 2), STEP])
@example([sent("a", 0, metadata={"shelf": 1}), STEP, sent("a", 0, metadata={"shelf": 2}), STEP, COMPACT, STEP])
@example([sent("a", 0, 2), STEP, REFRESH, sent("a", 0, 2, title="Port Ellery"), STEP, GONE, STEP, Happen("restart")])
@settings(max_examples=15)
def test_answers_as_of_a_snapshot_are_those_it_gave(steps: Sequence[Step]) -> None:
    with TemporaryDirectory() as folder:
        check(Path(folder), steps)


KEPT = timedelta(seconds=1)
LONGEST = 90.0
"""Seconds; a busy machine needs more of them for the same work."""


def test_the_past_answers_while_it_is_cleaned_up_behind(tmp_path: Path) -> None:
    """Four askers go back while a writer commits, merges, compacts and cleans: right, or gone for a reason."""
    home, chance, stop = Home(tmp_path), random.Random(5), threading.Event()
    told: dict[int, Any] = {}
    times: dict[int, datetime] = {}
    errors: list[BaseException] = []
    right, gone = [0] * 4, [0] * 4
    readers = Readers(home, Metrics())
    history = History(readers, Metrics(), capacity=3)

    def keep_asking(which: int) -> None:
        own = random.Random(which)
        manifests = Manifests(home.incarnation(NAMESPACE) / "manifests")
        try:
            while not stop.is_set():
                number = own.choice(list(told))
                when: When = times[number] if own.random() < 0.5 else number
                try:
                    snapshot = history.snapshot(NAMESPACE, when)
                    with standing(snapshot.folder, snapshot.manifest.number):
                        found = answers(snapshot, QUESTIONS[:1])
                except SnapshotGone:
                    assert not manifests.exists(number) and now() - times[number] > KEPT
                    gone[which] += 1
                    continue
                # A moment whose snapshot is gone means an earlier one, perhaps one that maintenance made.
                assert snapshot.manifest.number == number or not manifests.exists(number)
                assert found == told.get(snapshot.manifest.number, found)
                right[which] += snapshot.manifest.number == number
        except BaseException as error:
            errors.append(error)
            stop.set()

    with Log(tmp_path / "log.db") as log, Runner(home, log, PIPELINE) as runner:

        def commit() -> None:
            for _ in range(2):
                text = " ".join(chance.sample(SENTENCES, 3))
                metadata = {"shelf": chance.randrange(4)}
                id = chance.choice("abcdef")
                log.append([DocumentEvent(namespace=NAMESPACE, id=id, text=text, metadata=metadata)])
            runner.step()
            newest = readers.refresh(NAMESPACE)
            times[newest.manifest.number] = newest.manifest.time
            told[newest.manifest.number] = answers(newest, QUESTIONS[:1])

        commit()
        askers = [threading.Thread(target=keep_asking, args=(which,)) for which in range(4)]
        for asker in askers:
            asker.start()
        commits, cleaned, until = 0, 0, time.monotonic() + LONGEST
        while (commits < 24 or cleaned < 10 or sum(right) < 20) and time.monotonic() < until and not stop.is_set():
            commit()
            commits += 1
            [writer] = runner.writers()
            maintenance.merge(writer, fan=3)
            if commits % 4 == 0:
                maintenance.compact(writer)
                cleaned += maintenance.clean(writer, Retention(reach=timedelta(0), every=KEPT))
        stop.set()
        for asker in askers:
            asker.join()
    if errors:
        raise errors[0]
    assert sum(right) >= 20 and cleaned >= 10, (right, gone, commits, cleaned)
