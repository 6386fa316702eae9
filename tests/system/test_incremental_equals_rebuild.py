"""Whatever happened to the documents, the index and its answers are those of a clean rebuild."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings

from index import compare, maintenance
from index.home import Home
from index.maintenance import Retention
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.snapshot import Snapshot
from index.types import DocumentEvent, Question
from query.modes.base import Mode
from query.retrieve import MODES
from streams.applier import Pace
from streams.chunk import ChunkConfig
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline, open_successor
from streams.rebuild import replay

from .histories import NAMESPACE, SENTENCES, Happen, Replay, Send, Step, histories


class AliasHashing(HashingEmbedder):
    """Hashing that claims to know aliases, so that alias edges take part."""

    alias_threshold = 0.5


EMBEDDER = AliasHashing(64)
PIPELINE = Pipeline(ChunkConfig(least=8, most=24), RulesExtractor(), EMBEDDER)
QUESTIONS = (
    "Who built the ferry that Mara Quill of Port Ellery raised?",
    "Who repaired the Amber Lock?",
    "Where did the Osprey sink?",
    "Port Ellery",
    "winter 1932",
    "zzz",
)
AS_EVER = Pace()
EXACT_MAX = 3
"""So few that vectors are left in their tables and held in memory in turns; so few rows that no search misses one."""
NOTHING_KEPT = Retention(reach=timedelta(0), every=timedelta(0))


class History:
    """A namespace while a history happens to it, with a reader that follows."""

    def __init__(self, folder: Path, pipeline: Pipeline = PIPELINE, pace: Pace = AS_EVER) -> None:
        self.home = Home(folder)
        self.pipeline, self.pace = pipeline, pace
        folder.mkdir(exist_ok=True)
        self.stack = ExitStack()
        self.log = self.stack.enter_context(Log(folder / "log.db"))
        self.runner = Runner(self.home, self.log, self.pipeline, pace=self.pace)
        self.reader: Reader | None = None
        self.sent: list[Any] = []

    def happen(self, step: Step) -> None:
        match step:
            case Send(event):
                self.sent.append(event)
                self.log.append([event])
            case Replay(which) if self.sent:
                event = self.sent[which % len(self.sent)]
                self.log.append([event])
            case Replay():
                pass
            case _:
                self._do(step.what)

    def close(self) -> None:
        self.runner.close()
        self.stack.close()

    def _do(self, what: str) -> None:
        if what == "restart":
            self.runner.close()
            self.runner = Runner(self.home, self.log, self.pipeline, pace=self.pace)
        elif what == "step":
            self.runner.step()
        elif NAMESPACE in self.home.names():
            if what == "refresh":
                self.reader = self.reader or Reader(self.home.incarnation(NAMESPACE), exact_max=EXACT_MAX)
                self.reader.refresh()
                return
            self.runner.step()
            for writer in self.runner.writers():
                if what == "merge":
                    maintenance.merge(writer, fan=2)
                elif what == "compact":
                    maintenance.compact(writer)
                elif what == "index":
                    maintenance.index(writer, EXACT_MAX)
                elif what == "clean":
                    maintenance.clean(writer, NOTHING_KEPT)


@contextmanager
def rebuilt(home: Home, pipeline: Pipeline) -> Iterator[Path]:
    """Folder of a clean rebuild of the namespace's documents."""
    folder = home.incarnation(NAMESPACE)
    manifest = Reader(folder).snapshot.manifest
    opened = open_successor(home, NAMESPACE, pipeline, manifest.positions)
    with opened.writer:
        replay(opened, NAMESPACE, folder, manifest, pipeline, lambda done, of: None)
    yield opened.writer.folder


def answers(snapshot: Snapshot, modes: Mapping[str, Mode]) -> dict[str, Any]:
    """What every mode answers to every question, by key."""
    found = {}
    for text in QUESTIONS:
        [vector] = EMBEDDER.embed([text]).astype(np.float64)
        question = Question(text, vector, vector, lambda part: EMBEDDER.embed([part])[0])
        for name, mode in modes.items():
            ranking = mode.rank(snapshot, question, 10)
            keys = snapshot.kinds.passages.keys
            found[f"{name}: {text}"] = [
                (keys[scored.passage].hex(), round(scored.score, 9)) for scored in ranking.found
            ]
    return found


def check(
    folder: Path,
    history: Sequence[Step],
    pipeline: Pipeline = PIPELINE,
    pace: Pace = AS_EVER,
    finish: Callable[[Runner], None] = Runner.drain,
) -> None:
    """Let a history happen, apply what is left with `finish`, and compare the index with a clean rebuild."""
    happening = History(folder, pipeline, pace)
    try:
        for step in history:
            happening.happen(step)
        finish(happening.runner)
        if NAMESPACE not in happening.home.names():
            return
        living = happening.home.incarnation(NAMESPACE)
        followed = happening.reader.refresh() if happening.reader is not None else Reader(living).snapshot
        with rebuilt(happening.home, pipeline) as clean:
            found = list(compare.differences(compare.newest_state(living), compare.newest_state(clean)))
            assert not found, "\n".join(map(str, found[:20]))
            expected = answers(Reader(clean).snapshot, MODES)
            assert answers(followed, MODES) == expected
            assert answers(Reader(living).snapshot, MODES) == expected
            assert answers(Reader(living, exact_max=EXACT_MAX).snapshot, MODES) == expected
    finally:
        happening.close()


def sent(document: str, *sentences: int, **fields: Any) -> Send:
    """A document of some of the sentences, by their place in SENTENCES."""
    text = " ".join(SENTENCES[place] for place in sentences)
    return Send(DocumentEvent(namespace=NAMESPACE, id=document, text=text, **fields))


GONE = Send(DocumentEvent(op="delete", namespace=NAMESPACE, id="a"))
STEP, REFRESH, COMPACT = Happen("step"), Happen("refresh"), Happen("compact")


@given(histories)
@example([sent("a", 4), STEP, GONE, STEP, sent("b", 5)])  # an alias dies before its other is born
@example(
    [sent("a", 0), STEP, sent("b", 1), sent("c", 1), STEP, REFRESH, Send(GONE.event.model_copy(update={"id": "b"}))]
)  # spellings change
@example(
    [sent("a", 0, 2), STEP, REFRESH, sent("a", 0, 2, title="Port Ellery"), STEP, REFRESH]
)  # the same passage under another title
@example([sent("a", 0, version=5), STEP, sent("a", 2, version=3), GONE, STEP, sent("a", 4, version=4)])  # late versions
@example(
    [
        sent("a", 0, 0, 0, 0, 0, 0, 0),
        STEP,
        REFRESH,
        sent("a", 0, 0, 0, 0),
        COMPACT,
        sent("a", 3, 0, 0, 0, 0, 0),
        REFRESH,
    ]
)  # twins
@settings(max_examples=25)
def test_incremental_equals_rebuild(history: Sequence[Step]) -> None:
    with TemporaryDirectory() as folder:
        check(Path(folder), history)


@pytest.mark.soak
def test_incremental_equals_rebuild_soak(soak_report: Callable[[dict[str, Any]], None]) -> None:
    """The same over many more and longer histories."""
    done = 0

    @given(histories)
    @settings(max_examples=500)
    def many(history: Sequence[Step]) -> None:
        nonlocal done
        with TemporaryDirectory() as folder:
            check(Path(folder), history)
        done += 1

    many()
    soak_report({"histories": done, "differences": 0})
