"""Readers under continuous commits, compaction and cleaning: every answer belongs to one snapshot, and none fails."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index import maintenance
from index.home import Home
from index.maintenance import Retention
from index.reader import Reader
from index.snapshot import Snapshot
from query.retrieve import MODES, retrieve
from streams.local import Runner
from streams.log import Log

from .ingesting import DOCUMENTS, NAMES, NAMESPACE, PIPELINE, event

READERS = 4
ENOUGH = 10
"""Commits, and answers."""


def check(snapshot: Snapshot, question: str, mode: str) -> None:
    """What one snapshot says of itself must agree: tables, vectors, graph, counts and the answer."""
    counts = snapshot.manifest.counts
    assert (snapshot.passages.n_live, snapshot.facts.n_live) == (counts.passages, counts.facts)
    for table, count in (("passages", counts.passages), ("facts", counts.facts), ("entities", counts.entities)):
        assert snapshot.dataset(table).count_rows() == count  # type: ignore[arg-type]
    living = set(snapshot.live_passages.tolist())
    facts = np.arange(len(snapshot.endpoints))
    for fact in facts[snapshot.facts.has(facts)].tolist():
        supporting, _ = snapshot.supports.row(fact)
        assert len(supporting), "a fact without its passage"
        assert set(supporting.tolist()) <= living, "a fact of a passage that is gone"
    listed = {
        key for row in snapshot.documents_by_id([str(i) for i in range(DOCUMENTS)]).values() for key in row.passages
    }
    assert listed == {snapshot.kinds.passages.keys[number] for number in living}
    answer = retrieve(snapshot, PIPELINE.embedder, question, mode=mode, k=5, with_explanation=True)
    assert answer.snapshot == snapshot.manifest.number
    assert {bytes.fromhex(passage.key) for passage in answer.passages} <= listed


def read_under_commits(folder: Path, seconds: float) -> dict[str, int]:
    """Four readers ask while a writer commits, compacts and cleans; returns how much of each happened."""
    stop = threading.Event()
    errors: list[BaseException] = []
    answered = [0] * READERS
    home = Home(folder)
    chance = random.Random(4)

    def keep_reading(which: int) -> None:
        own, reader = random.Random(which), Reader(home.incarnation(NAMESPACE))
        try:
            while not stop.is_set():
                names = own.sample(NAMES, 2)
                check(reader.refresh(), f"What did {names[0]} write to {names[1]}?", own.choice(list(MODES)))
                answered[which] += 1
        except BaseException as error:
            errors.append(error)
            stop.set()

    with ExitStack() as stack:
        log = stack.enter_context(Log(folder / "log.db"))
        runner = stack.enter_context(Runner(home, log, PIPELINE))
        revisions = dict.fromkeys(range(DOCUMENTS), 0)

        def commit() -> None:
            for _ in range(3):
                document = chance.randrange(DOCUMENTS)
                revisions[document] += 1
                log.append([event(document, revisions[document], chance)])
            runner.step()

        commit()
        readers = [threading.Thread(target=keep_reading, args=(which,)) for which in range(READERS)]
        for reader in readers:
            reader.start()
        commits, cleaned, until = 1, 0, time.monotonic() + seconds
        # On a busy machine it takes longer until there is something to see.
        while (time.monotonic() < until or commits <= ENOUGH or sum(answered) <= ENOUGH) and not stop.is_set():
            commit()
            commits += 1
            [writer] = runner.writers()
            maintenance.merge(writer, fan=3)
            if commits % 10 == 0:
                maintenance.compact(writer)
                # A reader may still be asking the snapshot it holds: that much is kept.
                cleaned += maintenance.clean(writer, Retention(reach=timedelta(0), every=timedelta(seconds=2)))
        stop.set()
        for reader in readers:
            reader.join()
    if errors:
        raise errors[0]
    return {"commits": commits, "answers": sum(answered), "snapshots cleaned": cleaned}


def test_every_answer_belongs_to_one_snapshot(tmp_path: Path) -> None:
    done = read_under_commits(tmp_path, seconds=5)
    assert done["commits"] > 10 and done["answers"] > 10 and done["snapshots cleaned"] > 0, done


@pytest.mark.soak
def test_every_answer_belongs_to_one_snapshot_for_a_minute(
    tmp_path: Path, soak_report: Callable[[dict[str, Any]], None]
) -> None:
    soak_report({"seconds": 60, "readers": READERS, "errors": 0, **read_under_commits(tmp_path, seconds=60)})
