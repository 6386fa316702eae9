"""What a model has just said, in a file of lines until the table `understanding` takes many of them at once."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from threading import Lock

from .types import Key


class Answers:
    """Answers by content address. Safe for threads; one process writes the file.

    An answer is in the file before `add` returns, so a killed process loses none. The file is not synced: after a power
    loss the last answers may be gone, and lines that were cut short are left out; they are bought again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._waiting, whole = _read(path)
        if not whole:
            self._rewrite()

    def add(self, key: Key, answer: str) -> None:
        """Keep one answer; one that is there already stays. Raises OSError, and keeps nothing then."""
        with self._lock:
            if key not in self._waiting:
                with open(self._path, "ab", buffering=0) as file:
                    file.write(_line(key, answer))
                self._waiting[key] = answer

    def find(self, keys: Iterable[Key]) -> dict[Key, str]:
        """The answers among `keys` that wait here."""
        with self._lock:
            return {key: self._waiting[key] for key in keys if key in self._waiting}

    def all(self) -> dict[Key, str]:
        """Every answer that waits."""
        with self._lock:
            return dict(self._waiting)

    def remove(self, keys: Collection[Key]) -> None:
        """Let go of answers that are in the table now."""
        with self._lock:
            for key in keys:
                del self._waiting[key]
            self._rewrite()

    def _rewrite(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(b"".join(_line(key, answer) for key, answer in self._waiting.items()))
        os.replace(fresh, self._path)


def _line(key: Key, answer: str) -> bytes:
    return json.dumps([key.hex(), answer]).encode() + b"\n"


def _read(path: Path) -> tuple[dict[Key, str], bool]:
    """The answers of a file, and whether every one of its lines holds one."""
    data = path.read_bytes() if path.exists() else b""
    found: dict[Key, str] = {}
    whole = data.endswith(b"\n") or not data
    for line in data.splitlines():
        try:
            address, answer = json.loads(line)
            found[bytes.fromhex(address)] = str(answer)
        except (ValueError, TypeError):
            whole = False
    return found, whole
