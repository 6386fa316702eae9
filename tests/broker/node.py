"""One Kafka broker in a process of its own, that is also a controller."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import wait_until

from .java import command, lay_out

_START_SECONDS = 60
_STARTED = b"Kafka Server started"


class Node:
    """A broker over one folder; it can be killed and started again, on the same data and ports."""

    def __init__(self, number: int, folder: Path, properties: dict[str, object]) -> None:
        self.number = number
        self.log = folder / "log"
        self._data = folder / "data"
        self._properties = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self._said = 0
        folder.mkdir(parents=True, exist_ok=True)
        lines = {"node.id": number, "log.dirs": self._data} | properties
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    @property
    def pid(self) -> int | None:
        """Of the process that runs; None where none does."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def launch(self) -> None:
        """Start the process; `wait` tells when it serves."""
        if not self._data.is_dir():
            lay_out(self._data, node=self.number, properties=self._properties)
        self._said = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command("kafka.Kafka", str(self._properties)),
                stdout=log,
                stderr=log,
                cwd=self.log.parent,
                # Ctrl-C is for who started it, and who stops it then.
                start_new_session=True,
            )

    def wait(self) -> None:
        """Return once it serves.

        Raises:
            RuntimeError: it ended, or needs more than a minute; with the end of its log.
        """
        try:
            wait_until(lambda: self.pid is None or self._serves(), timeout=_START_SECONDS)
        except AssertionError:
            raise RuntimeError(f"Kafka did not start within {_START_SECONDS} s:\n{self._tail()}") from None
        if self.pid is None:
            raise RuntimeError(f"Kafka ended while it started:\n{self._tail()}")

    def kill(self) -> None:
        """End it at once, as a crash does (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask_to_stop(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def stopped(self, seconds: float) -> bool:
        """Whether it ends within `seconds`."""
        try:
            return self._process is None or self._process.wait(seconds) is not None
        except subprocess.TimeoutExpired:
            return False

    def said(self) -> str:
        """All that it has written so far, over all its lives."""
        return self.log.read_text(errors="replace")

    def _serves(self) -> bool:
        with open(self.log, "rb") as log:
            log.seek(self._said)
            return _STARTED in log.read()

    def _tail(self) -> str:
        return self.said()[-2000:]
