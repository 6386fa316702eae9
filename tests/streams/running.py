"""A data folder for tests of the runner: events go into its log, and runners come and go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from index.home import Home
from index.reader import Reader
from index.types import DocumentEvent
from streams.applier import Pace
from streams.apply import Applied
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

from .stubs import NotingExtractor, small_pipeline

QUIET = Pace(batch_events=2, checkpoint_seconds=3600, clean_seconds=3600)


class Running:
    """A data folder with its log; `runner` comes and goes."""

    def __init__(self, folder: Path, log: Log) -> None:
        self.home, self.log = Home(folder), log
        self.extractor = NotingExtractor()
        self.batches: list[tuple[str, int]] = []

    @property
    def pipeline(self) -> Pipeline:
        return small_pipeline(self.extractor)

    @contextmanager
    def runner(self, pace: Pace = QUIET) -> Iterator[Runner]:
        def note(namespace: str, applied: Applied) -> None:
            self.batches.append((namespace, applied.events))

        with Runner(self.home, self.log, self.pipeline, pace=pace, on_batch=note) as runner:
            yield runner

    def send(self, *ids: str, namespace: str = "ada", text: str = "Ada Moor met Bo Larsen.") -> None:
        self.log.append([DocumentEvent(namespace=namespace, id=id, text=f"{text} This is {id}.") for id in ids])

    def ids(self, namespace: str = "ada") -> set[str]:
        """Living documents of the newest snapshot."""
        snapshot = Reader(self.home.incarnation(namespace)).snapshot
        rows = snapshot.dataset("documents").to_table(columns=["id", "deleted"]).to_pylist()
        return {row["id"] for row in rows if not row["deleted"]}

    def waiting(self, namespace: str = "ada") -> list[str]:
        """Events that are still in the log."""
        return [accepted.event.id for accepted in self.log.read(namespace, 0, 1_000, 1 << 30)]
