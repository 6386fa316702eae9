"""What was freed is given back."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from index.memory import give_back


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_freed_memory_leaves_the_process() -> None:
    before = resident()
    blocks = [b"x" * 1_000 for _ in range(200_000)]
    last = b"y" * 1_000
    table = pa.array(blocks)
    assert resident() - before > 200 * 2**20
    del blocks, table
    give_back()
    assert resident() - before < 100 * 2**20 and last
