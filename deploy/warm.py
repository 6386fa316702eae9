"""Warming up: what a process compiles or loads once is done before the first document and the first question come."""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Final, Self

from index.home import Home
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.renewal import upon, views
from index.types import DocumentEvent
from query.retrieve import MODES, retrieve
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

_log = logging.getLogger(__name__)

_NAMESPACE: Final = "warm-up"
_QUESTION: Final = "Who repaired the Tern that sailed to Falkirk?"


class WarmUp:
    """Warms the process up in a thread of its own, which `__exit__` waits for."""

    def __init__(self) -> None:
        self._done = Event()
        self._thread = Thread(target=self._run, name="gistream-warm-up", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def unfinished(self) -> str | None:
        """Why the process is not ready; None once it is."""
        return None if self._done.is_set() else "warming up"

    def _run(self) -> None:
        try:
            warm_up()
        except Exception:
            # It can wait: what was to be warm is then made when it is needed.
            _log.exception("warming up failed; the first commit and the first answers will take longer")
        self._done.set()


def warm_up() -> None:
    """Index three documents in a temporary folder, each in a commit of its own, and ask every mode.

    Numba loads its kernels where they are called first, and compiles them on a machine that never ran them: seconds
    that would be added to the first commit and the first answer. Nothing but its cache is left behind, and no model
    of the settings is called.
    """
    pipeline = Pipeline(CONTENT, RulesExtractor(), HashingEmbedder(8))
    with TemporaryDirectory(prefix="gistream-") as folder, Log(Path(folder) / "log.db") as log:
        home = Home(Path(folder))
        with Runner(home, log, pipeline) as runner:
            _add(log, runner, "1", "Anna Berg repaired the Tern. The Tern lay at Dock Nine.")
            reader = Reader(home.incarnation(_NAMESPACE))
            _add(log, runner, "2", "Bert Cole sailed the Tern to Falkirk.")
            _add(log, runner, "3", "Anna Berg waited at Dock Nine for Bert Cole.")
        # A step over several commits takes other kernels than opening a snapshot.
        snapshot = reader.refresh()
        for view in views(snapshot).values():
            # What a reader does in a thread of its own would be compiled there, and hold up the others.
            upon(view, view.renewed(), view)
        for mode in MODES:
            retrieve(snapshot, pipeline.embedder, _QUESTION, mode=mode, k=1)


def _add(log: Log, runner: Runner, id: str, text: str) -> None:
    log.append([DocumentEvent(namespace=_NAMESPACE, id=id, text=text)])
    runner.drain()
