"""What the system says of a process: its processor time, its memory, its open files. Linux only."""

from __future__ import annotations

import os
from pathlib import Path


def children(pid: int) -> list[int]:
    """Processes that a process started and that were not waited for; none where it has ended."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in _read(task).split()]


def command(pid: int) -> list[str]:
    """The words a process was started with; none where it has ended."""
    return _read(Path(f"/proc/{pid}/cmdline")).split("\0")[:-1]


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    state = _read(Path(f"/proc/{pid}/stat")).rpartition(") ")[2]
    return state != "" and state[0] != "Z"


def cpu_seconds(pid: int) -> float:
    """Seconds of one core that a process has used so far, its threads together."""
    # The name in front may hold anything, also spaces and brackets.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Bytes of a process that are in memory, what it shares with others included."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def open_files(pid: int) -> int:
    """Files and sockets that a process holds open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
