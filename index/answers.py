"""What a model has just said, in files of lines until the table `understanding` takes many of them at once."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from uuid import uuid4

from .lock import stands
from .types import Key

SUFFIX = ".jsonl"


@dataclass(slots=True, eq=False)
class Page:
    """One file of answers, and the lock on it: as long as it is held nobody else looks into the file."""

    path: Path
    file: int
    answers: dict[Key, str] = field(default_factory=dict)


class Answers:
    """Answers by content address, in a folder where each process has its own files. Safe for threads.

    An answer is in a file before `add` returns, so a killed process loses none: whoever opens the folder next takes
    over the files of those that are no more. Nothing is synced here; after a power loss the last answers may be gone,
    and lines that were cut short are left out; they are bought again.
    """

    def __init__(self, folder: Path) -> None:
        """Takes over what nobody holds; others may do the same at once. Raises OSError where it cannot be read."""
        self._folder = folder
        self._lock = Lock()
        self._pages = _left_behind(folder)
        self._current: Page | None = None
        self._closed = False

    def add(self, key: Key, answer: str) -> None:
        """Keep one answer; one that is there already stays. Raises OSError, and keeps nothing then."""
        with self._lock:
            if any(key in page.answers for page in self._pages):
                return
            if self._current is None:
                self._current = _begun(self._folder)
                self._pages.append(self._current)
            page = self._current
            line = _line(key, answer)
            if os.write(page.file, line) < len(line):
                # What follows a piece of a line would be lost with it.
                self._current = None
                raise OSError(f"no room for an answer in {page.path}")
            page.answers[key] = answer
            if self._closed:
                self._let_go()

    def find(self, keys: Iterable[Key]) -> dict[Key, str]:
        """The answers among `keys` that wait here."""
        with self._lock:
            return {key: page.answers[key] for key in keys for page in self._pages if key in page.answers}

    def turn(self) -> Sequence[Page]:
        """Everything that waits; answers that come from now on go into another file."""
        with self._lock:
            self._current = None
            return tuple(self._pages)

    def done(self, pages: Sequence[Page]) -> None:
        """Remove files whose answers are in the table now; those that were let go of meanwhile are left."""
        with self._lock:
            for page in [page for page in pages if page in self._pages]:
                page.path.unlink(missing_ok=True)
                os.close(page.file)
                self._pages.remove(page)

    def close(self) -> None:
        """Leave the files that are there to whoever opens the folder next; what is added still is left as well."""
        with self._lock:
            self._closed = True
            self._let_go()

    def _let_go(self) -> None:
        for page in self._pages:
            os.close(page.file)
        self._pages, self._current = [], None


def _begun(folder: Path) -> Page:
    """A new file that nobody else will look into: it gets its name when it is locked."""
    folder.mkdir(parents=True, exist_ok=True)
    name = uuid4().hex
    draft, path = folder / f".{name}", folder / f"{name}{SUFFIX}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        draft.rename(path)
    except BaseException:
        os.close(file)
        raise
    return Page(path, file)


def _left_behind(folder: Path) -> list[Page]:
    """The files of processes that are no more, which are ours from now on."""
    pages = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            continue
        if stands(path, file):
            pages.append(Page(path, file, _read(path)))
        else:
            # Its owner has brought it into the table in this very moment.
            os.close(file)
    return pages


def _line(key: Key, answer: str) -> bytes:
    return json.dumps([key.hex(), answer]).encode() + b"\n"


def _read(path: Path) -> dict[Key, str]:
    """The answers in those lines of a file that are whole."""
    found: dict[Key, str] = {}
    for line in path.read_bytes().splitlines():
        try:
            address, answer = json.loads(line)
            found[bytes.fromhex(address)] = str(answer)
        except (ValueError, TypeError):
            continue
    return found
