"""After the warm-up the first commit and the first questions find their kernels loaded, and the server says when."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Event

import httpx
import pytest

from deploy.embedded import Embedded
from deploy.settings import Settings
from deploy.warm import warm_up
from tests.support import wait_until

ROOT = Path(__file__).resolve().parents[2]

FIRST_USE = """
import sys
from pathlib import Path
from deploy.warm import warm_up
from index.home import Home
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.types import DocumentEvent
from query.retrieve import MODES, retrieve
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

def loaded():
    modules = [module for name, module in sys.modules.items() if name.startswith("index.")]
    kernels = [value for module in modules for value in vars(module).values()]
    return {(kernel.__name__, str(form)) for kernel in kernels for form in getattr(kernel, "signatures", [])}

warm_up()
before = loaded()
folder = Path(sys.argv[1])
pipeline = Pipeline(CONTENT, RulesExtractor(), HashingEmbedder())
with Log(folder / "log.db") as log, Runner(Home(folder), log, pipeline) as runner:
    for number in range(3):
        text = f"The keeper of Lamp Nine met Carl Lee in {1900 + number}. Ida Moss wrote to Carl Lee."
        log.append([DocumentEvent(namespace="ns", id=str(number), title="Lamps", text=text)])
        runner.drain()
        reader = Reader(Home(folder).incarnation("ns")) if number == 0 else reader
for mode in MODES:
    assert retrieve(reader.refresh(), pipeline.embedder, "Who met Carl Lee?", mode=mode).passages
print(len(before), sorted(loaded() - before))
"""


def test_what_comes_first_loads_no_kernel(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIRST_USE, str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    before, late = ended.stdout.split(maxsplit=1)
    assert late == "[]\n"
    assert int(before) >= 5
    assert ended.stderr == ""


def test_it_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    warm_up()
    assert list(tmp_path.iterdir()) == []


def test_until_it_is_warm_the_server_lives_and_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warm = Event()
    monkeypatch.setattr("deploy.warm.warm_up", lambda: warm.wait(60))
    with Embedded(Settings(data=tmp_path, port=0)) as server:
        try:
            assert httpx.get(f"{server.url}/health/live").status_code == 200
            ready = httpx.get(f"{server.url}/health/ready")
            assert (ready.status_code, ready.json()["detail"]) == (503, "warming up")
            assert server.trouble == "warming up"
            written = httpx.put(f"{server.url}/v1/namespaces/ns/documents/a", json={"text": "Anna."})
            assert written.status_code == 202, "what comes is stored all the same"
        finally:
            warm.set()
        wait_until(lambda: httpx.get(f"{server.url}/health/ready").status_code == 200, what="being ready")


def test_a_warm_up_that_fails_is_told_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("no room for temporary files")

    monkeypatch.setattr("deploy.warm.warm_up", fail)
    with caplog.at_level(logging.ERROR), Embedded(Settings(data=tmp_path, port=0)) as server:
        wait_until(lambda: server.trouble is None, what="being ready")
    assert "no room for temporary files" in caplog.text
