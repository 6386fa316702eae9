"""The readers of one data folder: opened when first asked for, kept fresh behind the questions, bounded in number."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from typing import Self

from index.home import Home
from index.metrics import Metrics
from index.reader import Reader
from index.snapshot import Snapshot

_log = logging.getLogger(__name__)

CAPACITY = 64
"""Namespaces held open; the least recently used goes first. What still reads its snapshot keeps it alive."""
PAUSE_SECONDS = 0.05
"""Between two looks at the folder, each of which costs a few system calls per open namespace."""


class Readers:
    """Snapshots of namespaces by name. Any number of threads may ask.

    Between `start` and `close` a thread of its own follows the commits and the incarnations of what is open, so that a
    question never pays for a swap; without it only `refresh` does.
    """

    def __init__(self, home: Home, metrics: Metrics, *, capacity: int = CAPACITY, pause: float = PAUSE_SECONDS) -> None:
        self.home = home
        self._metrics = metrics
        self._capacity = capacity
        self._pause = pause
        self._lock = threading.Lock()
        self._reopening = threading.Lock()
        self._held: OrderedDict[str, Future[Reader]] = OrderedDict()
        """A reader that is still being opened is a future that is not done: whoever else needs it waits for it."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._keep_fresh, name="gistream-readers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following, and let every reader go."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._held.clear()

    def snapshot(self, name: str) -> Snapshot:
        """The snapshot held of a namespace; opens it where none is, which takes as long as reading its segments.

        Raises NotFound where there is no such namespace, StoreError where its files are damaged.
        """
        return self._reader(name).snapshot

    def refresh(self, name: str) -> Snapshot:
        """The newest snapshot on disk, which is held from then on. Raises as `snapshot` does."""
        return self.renewed(name).snapshot

    def renewed(self, name: str) -> Reader:
        """The reader of the newest incarnation, which holds the newest snapshot on disk. Raises as `snapshot` does."""
        return self._renewed(name, self._reader(name))

    def _reader(self, name: str) -> Reader:
        with self._lock:
            if (held := self._held.get(name)) is not None:
                self._held.move_to_end(name)
        if held is not None:
            return held.result()
        # Asked before a place is taken, so that names which do not exist push nothing out.
        folder = self.home.incarnation(name)
        mine: Future[Reader] = Future()
        with self._lock:
            held = self._held.setdefault(name, mine)
            while len(self._held) > self._capacity:
                self._held.popitem(last=False)
                self._metrics.count("gistream_namespaces_evicted_total", role="reader")
        if held is mine:
            try:
                mine.set_result(Reader(folder))
                self._metrics.count("gistream_namespaces_opened_total", role="reader")
            except BaseException as error:
                self._drop(name, mine)
                mine.set_exception(error)
        return held.result()

    def _renewed(self, name: str, reader: Reader) -> Reader:
        """Bring a held reader, or its successor in the namespace's newest incarnation, up to date."""
        folder = self.home.incarnation(name)
        if folder != reader.folder:
            # One thread opens the successor; questions go on with the former reader until it is there.
            with self._reopening:
                reader = self._reader(name)
                if folder != reader.folder:
                    reader = Reader(folder)
                    self._replace(name, reader)
        before, started = reader.snapshot, time.perf_counter()
        if reader.refresh() is not before:
            self._metrics.observe("gistream_snapshot_swap_seconds", time.perf_counter() - started)
        return reader

    def _replace(self, name: str, reader: Reader) -> None:
        done: Future[Reader] = Future()
        done.set_result(reader)
        with self._lock:
            if name in self._held:
                self._held[name] = done

    def _drop(self, name: str, held: Future[Reader]) -> None:
        with self._lock:
            if self._held.get(name) is held:
                del self._held[name]

    def _keep_fresh(self) -> None:
        while not self._stopping.wait(self._pause):
            with self._lock:
                ready = [(name, held) for name, held in self._held.items() if held.done()]
            for name, held in ready:
                try:
                    self._renewed(name, held.result())
                except Exception as error:
                    # Deleted, or damaged: let go instead of answering from what stays behind. The next question opens
                    # it anew, and meets the error itself.
                    self._drop(name, held)
                    _log.warning("namespace %s cannot be followed and was let go: %s", name, error)
