"""A thousand namespaces in one process: fed at random, with few open at a time, none knows of another."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from index.home import Home
from index.metrics import Metrics
from index.reader import Reader
from index.types import DocumentEvent
from query.readers import Readers
from streams.applier import Pace
from streams.local import Runner
from streams.log import Log
from streams.rebuild import verify

from ..streams.stubs import small_pipeline

OPEN = 16
HANDLES_EACH = 2
"""A namespace that is open has its lock, and a file that it writes at the moment."""
MEMORY = 150 * 2**20
"""Bytes by which the process may grow while the other three quarters of the namespaces come."""


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def memory() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize(
    "count", [pytest.param(60, marks=pytest.mark.slow), pytest.param(1_000, marks=pytest.mark.soak)]
)
def test_namespaces_share_a_process_and_nothing_else(tmp_path: Path, count: int) -> None:
    chance, home, pipeline, metrics = random.Random(count), Home(tmp_path), small_pipeline(), Metrics()
    expected: dict[str, dict[str, str]] = {f"n{number}": {} for number in range(count)}
    files, used = [open_files()], []
    pace = Pace(open_namespaces=OPEN)
    with (
        Log(tmp_path / "log.db") as log,
        Runner(
            home, log, pipeline, pace=pace, metrics=metrics, on_batch=lambda *_: files.append(open_files())
        ) as runner,
        Readers(home, metrics, capacity=OPEN) as readers,
    ):
        for share in range(4):
            known = list(expected)[: count * (share + 1) // 4]
            for name in [*known[count * share // 4 :], *chance.choices(known, k=count // 2)]:
                id, secret = f"d{chance.randrange(4)}", f"{chance.randrange(10**9)}"
                if id in expected[name] and chance.random() < 0.3:
                    log.append([DocumentEvent(op="delete", namespace=name, id=id)])
                    del expected[name][id]
                else:
                    text = f"Ada Moor of {name} met Bo Larsen at Pier {secret}."
                    log.append([DocumentEvent(namespace=name, id=id, text=text)])
                    expected[name][id] = text
                if chance.random() < 0.05:
                    runner.drain()
                    readers.refresh(name)
            runner.drain()
            used.append(memory())
            assert len(runner.writers()) <= OPEN and len(readers) <= OPEN
    assert max(files) <= files[0] + HANDLES_EACH * OPEN + 30
    assert used[-1] - used[0] < MEMORY, f"resident bytes after each quarter: {used}"

    for name, documents in expected.items():
        rows = Reader(home.incarnation(name)).snapshot.dataset("documents").to_table().to_pylist()
        assert {row["id"]: row["text"] for row in rows if not row["deleted"]} == documents
    for name in chance.sample(sorted(expected), 12):
        assert not list(verify(home, name, pipeline))
