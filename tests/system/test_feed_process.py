"""A watched folder and a real process that is killed: in the end the index equals the folder."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path

import pytest

from deploy.settings import Settings
from index.errors import GistreamError
from index.home import Home
from index.reader import Reader
from tests.support import GISTREAM, environment, wait_until


class Watched:
    """A folder, and a data folder that a process keeps equal to it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "notes"
        self.root.mkdir()
        self.known: set[str] = set()
        """Every place that ever was."""
        self.settings = Settings(data=folder / "data", embedding_dimensions=32)
        self.environment = environment(data=self.settings.data, embedding_dimensions=32)

    def run(self, *arguments: str) -> None:
        subprocess.run([*GISTREAM, *arguments], env=self.environment, cwd=self.root, check=True, timeout=120)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*GISTREAM, *arguments], env=self.environment, cwd=self.root)

    def files(self) -> dict[str, str]:
        return {path.relative_to(self.root).as_posix(): path.read_text() for path in sorted(self.root.rglob("*.txt"))}

    def documents(self) -> dict[str, str]:
        """Text by id, as the newest snapshot has it."""
        try:
            snapshot = Reader(Home(self.settings.data).incarnation("notes")).snapshot
            found = snapshot.documents_by_id([*self.known])
        except (GistreamError, OSError):
            return {}
        return {id: document.text for id, document in found.items() if not document.deleted}

    def is_equal(self) -> bool:
        return self.documents() == self.files()

    def disturb(self, chance: random.Random) -> None:
        """One thing that happens in a folder."""
        files = sorted(self.root.rglob("*.txt"))
        act = chance.choice(["write", "write", "rename", "delete", "move"])
        if act == "write" or not files:
            path = self.root / f"{chance.randrange(12)}.txt"
            path.write_text(f"Mara Quill wrote {chance.randrange(10**6)}.")
        elif act == "delete":
            path = chance.choice(files)
            path.unlink()
        else:
            folder = self.root / "sub" if act == "move" else self.root
            folder.mkdir(exist_ok=True)
            path = folder / f"moved-{chance.randrange(6)}.txt"
            chance.choice(files).rename(path)
        self.known.update(self.files())


@pytest.mark.slow
def test_killed_again_and_again_the_index_equals_the_folder(tmp_path: Path) -> None:
    chance = random.Random(7)
    watched = Watched(tmp_path)
    for _ in range(8):
        watched.disturb(chance)
    watched.run("feed", "add", "folder", str(watched.root), "--namespace", "notes")
    for _ in range(2):
        running = watched.start("feed", "run")
        try:
            wait_until(watched.is_equal, timeout=90, what="the index equal to the folder")
            for _ in range(10):
                watched.disturb(chance)
            # Somewhere between the first of these and the last; what it had under way is for the next one.
            before = watched.documents()
            wait_until(lambda: watched.documents() != before or watched.is_equal(), timeout=60, what="the next commit")  # noqa: B023
        finally:
            running.kill()
            running.wait(30)
        for _ in range(10):
            watched.disturb(chance)
    running = watched.start("feed", "run")
    try:
        wait_until(watched.is_equal, timeout=90, what="the index equal to the folder")
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    finally:
        running.kill()
        running.wait(30)
    assert watched.is_equal()
    watched.run("verify", "notes")
