"""Keeping workers alive: each in a process of its own, started again whenever it ends and was not told to."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from signal import SIGTERM
from threading import Event
from typing import Final

from .exits import Exit

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a process is started again; they double while it keeps ending."""
WELL_SECONDS: Final = 60.0
"""A process that ran for so long was well; its next pause is the first again."""
STOP_SECONDS: Final = 60.0
"""What the batch under way may take once a process is told to stop."""
_LOOK_SECONDS = 0.1

_log = logging.getLogger("gistream")


@dataclass(slots=True)
class _Child:
    """A command and the process that runs it now."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    start_at: float = field(default=0.0)

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
        self.failures = 0 if now - self.started >= WELL_SECONDS else self.failures
        pause = min(FIRST_PAUSE * 2.0**self.failures, LONGEST_PAUSE)
        # One that ran for a while has no need to wait: the sooner it is back, the more of its partitions it keeps.
        pause = 0.0 if now - self.started > LONGEST_PAUSE / 10 and not self.failures else pause
        self.failures += 1
        self.start_at = now + pause
        _log.warning("the %s worker ended with %s and is started again in %.1f s", self.name, _said(code), pause)

    def stop(self, seconds: float) -> int:
        """End the process; its exit code, OK where there is none."""
        if self.process is None:
            return Exit.OK
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            _log.warning("the %s worker does not stop and is killed; nothing is lost", self.name)
            self.process.kill()
            code = self.process.wait()
        self._let_go()
        # One that was told before it could listen had begun nothing.
        return Exit.OK if code == -SIGTERM else abs(code)

    def _let_go(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None


def supervise(names: Sequence[str], arguments: Sequence[str], stop: Event) -> int:
    """Run `gistream worker --role NAME ARGUMENTS` for each name until `stop` is set.

    Returns the worst exit code with which they ended then. A process that ends before is started again, later each time
    it fails; where this process dies, they die with it.
    """
    program = [sys.executable, "-c", "from deploy.cli import main; main()", "worker"]
    children = [_Child(name, [*program, "--role", name, "--leashed", *arguments]) for name in names]
    while not stop.wait(_LOOK_SECONDS):
        for child in children:
            child.look()
    for child in children:
        if child.process is not None:
            child.process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    return max(child.stop(max(0.0, deadline - time.monotonic())) for child in children)


def _said(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
