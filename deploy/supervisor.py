"""Keeping workers alive: each in a process of its own, started again whenever it ends and was not told to."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from signal import SIGTERM
from typing import Final

from .exits import Exit

STOP_SECONDS: Final = 60.0
"""What the batch under way may take once a process is told to stop."""
_LOOK_SECONDS = 0.1

_log = logging.getLogger("gistream")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a process that ended stays down."""

    first: float = 0.5
    """Seconds; they double while it keeps ending."""
    longest: float = 30.0
    worked_seconds: float = 3.0
    """A process that ran for so long had begun to work: the first time it is back at once, to keep its partitions."""
    well_seconds: float = 60.0
    """A process that ran for so long was well: whatever was before is forgotten."""

    def pause(self, former: float | None, ran: float) -> float:
        """Seconds to wait after a process `ran` for so many, and was started `former` after its predecessor ended.

        `former` is None for the first.
        """
        if former is None or ran >= self.well_seconds:
            return 0.0 if ran >= self.worked_seconds else self.first
        return min(max(2 * former, self.first), self.longest)


@dataclass(slots=True)
class _Child:
    """A command and the process that runs it now."""

    name: str
    command: Sequence[str]
    patience: Patience
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    start_at: float = 0.0
    pause: float | None = None
    """The last one."""

    def look(self) -> None:
        """Start the process where it is due, and note its end."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.start_at:
                # While its standard input is open, we live.
                self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE)
                self.started = now
            return
        if (code := self.process.poll()) is None:
            return
        self._let_go()
        self.pause = self.patience.pause(self.pause, now - self.started)
        self.start_at = now + self.pause
        _log.warning("the %s worker ended with %s and is started again in %.1f s", self.name, _said(code), self.pause)

    def stop(self, seconds: float) -> int:
        """End the process, which was told to; its exit code as a shell says it, OK where there is none."""
        if self.process is None:
            return Exit.OK
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            _log.warning("the %s worker does not stop and is killed; nothing is lost", self.name)
            self.process.kill()
            code = self.process.wait()
        self._let_go()
        if code == -SIGTERM:
            # One that was told before it could listen had begun nothing.
            return Exit.OK
        return code if code >= 0 else 128 - code

    def _let_go(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None


def worker_command(role: str, arguments: Sequence[str]) -> list[str]:
    """What runs `gistream worker` in a process that `supervise` starts."""
    program = [sys.executable, "-c", "from deploy.cli import main; main()"]
    return [*program, "worker", "--role", role, "--leashed", *arguments]


def supervise(
    commands: Mapping[str, Sequence[str]],
    stop: threading.Event,
    patience: Patience = Patience(),
    stop_seconds: float = STOP_SECONDS,
) -> int:
    """Run commands, by the names of their workers, until `stop` is set; then tell them to stop, and wait so long.

    Returns the worst exit code with which they ended then. A process that ends before is started again, later each time
    it fails; where this process dies, those that are `on_a_leash` die with it.
    """
    children = [_Child(name, command, patience) for name, command in commands.items()]
    while not stop.wait(_LOOK_SECONDS):
        for child in children:
            child.look()
    for child in children:
        if child.process is not None:
            child.process.terminate()
    deadline = time.monotonic() + stop_seconds
    return max(child.stop(max(0.0, deadline - time.monotonic())) for child in children)


def on_a_leash() -> None:
    """End this process at once when standard input ends: whoever supervises it has died, and another starts others."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="gistream-leash", daemon=True).start()


def _said(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
