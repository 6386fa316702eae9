"""A killed process and torn files lose nothing that was acknowledged, and count nothing twice."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from index.home import Home
from index.manifest import Manifests
from index.reader import Reader
from streams.local import Runner
from streams.log import Log
from streams.rebuild import verify

from .ingesting import DOCUMENTS, NAMESPACE, PIPELINE, event

ROOT = Path(__file__).resolve().parents[2]


class Promised:
    """What the killed processes said before they died, per document."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int] = {}
        self.tried: dict[str, int] = {}

    def hear(self, line: str) -> None:
        word, *rest = line.split()
        if len(rest) == 2:
            (self.tried if word == "try" else self.acknowledged)[rest[0]] = int(rest[1])

    def check(self, folder: Path) -> None:
        """Index what is in the log, and compare with the promises and with a clean rebuild."""
        home = Home(folder)
        with Log(folder / "log.db") as log, closing(Runner(home, log, PIPELINE)) as runner:
            runner.drain()
            assert not runner.letters.waiting()
        rows = Reader(home.incarnation(NAMESPACE)).snapshot.documents_by_id([str(i) for i in range(DOCUMENTS)])
        for document, revision in self.acknowledged.items():
            assert document in rows, f"document {document} was acknowledged and is not there"
            row = rows[document]
            assert revision <= row.version <= self.tried[document], (document, revision, row.version)
            assert row.deleted == (row.version % 7 == 0)
            assert row.deleted or f"revision {row.version} of document {document}." in row.text
        found = list(verify(home, NAMESPACE, PIPELINE))
        assert not found, "\n".join(map(str, found[:20]))


def ingest_and_kill(
    folder: Path, seed: int, promised: Promised, chance: random.Random, *, checkpoint: float = 0.3, snapshots: int = 0
) -> None:
    """Let a real process ingest, and kill it at a random moment after its first acknowledgements and `snapshots`."""
    command = [sys.executable, "-m", "tests.system.ingesting", str(folder), str(seed), str(checkpoint)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        lines = 0
        while lines < 40 or (snapshots and committed(folder) < snapshots):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            promised.hear(line)
            lines += 1
        # The moment of death is what is random here; nothing waits for it.
        time.sleep(chance.random() * 0.8)
        process.kill()
        for line in process.stdout:
            if line.endswith("\n"):
                promised.hear(line)


def committed(folder: Path) -> int:
    """Number of the newest snapshot, 0 where there is none yet."""
    home = Home(folder)
    return max([0, *Manifests(home.incarnation(NAMESPACE) / "manifests").numbers()]) if NAMESPACE in home.names() else 0


def crash(folder: Path, kills: int, seed: int) -> None:
    promised, chance = Promised(), random.Random(seed)
    for round in range(1, kills + 1):
        ingest_and_kill(folder, round, promised, chance)
    promised.check(folder)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_over_ten_kills(tmp_path: Path) -> None:
    crash(tmp_path, kills=10, seed=20311)


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_over_fifty_kills(
    tmp_path: Path, soak_report: Callable[[dict[str, Any]], None]
) -> None:
    crash(tmp_path, kills=50, seed=int(time.time()))
    soak_report({"kills": 50, "lost": 0, "twice": 0})


def cut(path: Path, keep: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])


def newest_segment(folder: Path) -> Path:
    manifests = Manifests(folder / "manifests")
    for number in reversed(manifests.numbers()):
        if (delta := manifests.read(number).delta) is not None:
            return folder / "segments" / delta.name
    raise AssertionError("no commit changed anything")


def newest_lance(table: str) -> Callable[[Path], Path]:
    return lambda folder: min((folder / "tables" / f"{table}.lance" / "_versions").glob("*.manifest"))


def newest_lance_data(folder: Path) -> Path:
    return max((folder / "tables" / "passages.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)


def newest_manifest(folder: Path) -> Path:
    manifests = Manifests(folder / "manifests")
    return manifests.path(manifests.numbers()[-1])


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Promised]:
    """A data folder as a killed process left it, six snapshots after its last checkpoint."""
    folder, promised = tmp_path_factory.mktemp("killed"), Promised()
    ingest_and_kill(folder, 1, promised, random.Random(7), checkpoint=3600, snapshots=6)
    return folder, promised


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0.0, 0.6])
@pytest.mark.parametrize(
    "torn",
    [newest_manifest, newest_segment, newest_lance("passages"), newest_lance("documents"), newest_lance_data],
    ids=["manifest", "segment", "passages-manifest", "documents-manifest", "passages-data"],
)
def test_torn_files_are_replayed_from_the_log(
    tmp_path: Path, killed: tuple[Path, Promised], torn: Callable[[Path], Path], keep: float
) -> None:
    """As after a power loss: files written since the last checkpoint are cut short."""
    left, promised = killed
    shutil.copytree(left, tmp_path, dirs_exist_ok=True)
    folder = Home(tmp_path).incarnation(NAMESPACE)
    before = Manifests(folder / "manifests").numbers()[-1]
    cut(torn(folder), keep)

    promised.check(tmp_path)

    manifests = Manifests(folder / "manifests")
    assert manifests.numbers()[-1] > before, "numbers of torn snapshots must not be used again"
    with Log(tmp_path / "log.db") as log, closing(Runner(Home(tmp_path), log, PIPELINE)) as runner:
        log.append([event(1, 10_000_001, random.Random(1))])
        runner.drain()
    rows = Reader(folder).snapshot.documents_by_id(["1"])
    assert rows["1"].version == 10_000_001, "writing goes on"
    assert not list(verify(Home(tmp_path), NAMESPACE, PIPELINE))
