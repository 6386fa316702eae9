"""What a worker is given by its machine: a number, a port, and a word on what makes no sense."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli import app
from deploy.settings import Settings
from deploy.worker import metrics_port, serve_metrics, slot_of
from index.errors import BadRequest
from index.metrics import Metrics
from tests.support import GISTREAM

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (*GISTREAM, "worker")
HOLD = """
import sys
from pathlib import Path
from deploy.worker import slot_of
with slot_of(Path(sys.argv[1]), "apply") as slot:
    print(slot, flush=True)
    sys.stdin.read()
"""


def test_workers_of_a_role_have_different_numbers_and_free_ones_are_used_again(tmp_path: Path) -> None:
    first = slot_of(tmp_path, "apply")
    with ExitStack() as others:
        assert first.__enter__() == 1
        assert others.enter_context(slot_of(tmp_path, "apply")) == 2
        assert others.enter_context(slot_of(tmp_path, "apply")) == 3
        assert others.enter_context(slot_of(tmp_path, "understand")) == 1
        first.__exit__(None, None, None)
        assert others.enter_context(slot_of(tmp_path, "apply")) == 1


def test_a_worker_that_is_killed_leaves_its_number_to_its_successor(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    for _ in range(2):
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "1\n"
            with slot_of(tmp_path, "apply") as mine:
                assert mine == 2
            process.kill()


def test_no_two_workers_of_a_machine_share_a_port() -> None:
    ports = [metrics_port(9000, role, slot) for slot in range(1, 9) for role in ("understand", "apply")]
    assert ports == list(range(9000, 9016))
    assert {metrics_port(0, role, slot) for slot in (1, 2) for role in ("understand", "apply")} == {0}, "any port"


def test_metrics_are_shown_where_a_port_is_set(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = Settings(data=tmp_path, worker_metrics_port=port)
    metrics = Metrics()
    metrics.watch("gistream_worker_partitions", lambda: 7)
    serve_metrics(Settings(data=tmp_path), "understand", 1, metrics)
    serve_metrics(settings, "understand", 1, metrics)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert "gistream_worker_partitions 7.0" in answer.read().decode()
    with pytest.raises(BadRequest, match=f"understand worker cannot be shown at port {port}"):
        serve_metrics(settings, "understand", 1, metrics)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--unsupervised"], "one process has one role"),
        (["--unsupervised", "--role", "apply", "--from-start"], "would begin anew each time"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, arguments: list[str], told: str) -> None:
    found = CliRunner().invoke(app, ["worker", "--data", str(tmp_path), *arguments])
    assert found.exit_code != 0 and told in str(found.exception or found.output)
