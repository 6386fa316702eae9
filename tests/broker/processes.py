"""What the system says of a process: its processor time, its memory, its open files. Linux only."""

from __future__ import annotations

import os
from pathlib import Path


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
