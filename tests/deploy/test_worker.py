"""`gistream worker` as an operator meets it: what it refuses, what it survives, and what dies with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli import app
from deploy.exits import Exit
from deploy.settings import Settings
from deploy.worker import metrics_port, serve_metrics, slot_of
from index.errors import BadRequest
from index.metrics import Metrics
from tests.broker.cluster import Cluster
from tests.support import wait_until

from ..system.stream_histories import History
from ..system.streaming import PATIENCE, Stream, installation, lives

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from deploy.cli import main; main()", "worker"]
HOLD = """
import sys
from pathlib import Path
from deploy.worker import slot_of
with slot_of(Path(sys.argv[1]), "apply") as slot:
    print(slot, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def stream(kafka: Cluster, kafka_prefix: str, tmp_path: Path) -> Iterator[Stream]:
    with installation(tmp_path, kafka.bootstrap, kafka_prefix, 1, worker_stalled_seconds=5) as stream:
        yield stream


def refused(data: Path, bootstrap: str, *arguments: str) -> str:
    """What a worker says that ends at once, since nothing can be reached."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GISTREAM_")}
    environment |= {"GISTREAM_DATA": str(data), "GISTREAM_KAFKA_BOOTSTRAP": bootstrap, "PYTHONPATH": str(ROOT)}
    environment |= {"GISTREAM_KAFKA_PREFIX": "never-made-"}
    ended = subprocess.run(
        [*COMMAND, *arguments], env=environment, cwd=data, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == Exit.BROKER, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--role", "apply", "--unsupervised"]], ids=["supervised", "one-role"])
def test_what_is_wrong_from_the_beginning_ends_it(kafka: Cluster, tmp_path: Path, arguments: list[str]) -> None:
    assert "gistream topics create" in refused(tmp_path, kafka.bootstrap, *arguments)
    assert "no broker runs there" in refused(tmp_path, "127.0.0.1:1", *arguments)


@pytest.mark.slow
def test_its_processes_die_with_it(stream: Stream) -> None:
    worker = stream.start()
    worker.ready()
    children = worker.children()
    assert len(children) == 2 and all(map(lives, children))
    worker.process.kill()
    worker.process.wait()
    wait_until(lambda: not any(map(lives, children)), timeout=PATIENCE, what=f"the end of {children}")
    stream.workers.clear()


@pytest.mark.slow
def test_one_that_has_nothing_to_do_stays(stream: Stream) -> None:
    """It was started again behind all that there is, and is not taken for one that gets nowhere."""
    stream.start().ready()
    stream.send([History(3).next() for _ in range(20)])
    stream.settle()
    stream.stop(*stream.workers)
    worker = stream.start()
    worker.ready()
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.wait(13)
    assert "started again" not in worker.said
    children = worker.children()
    os.kill(children[0], signal.SIGTERM)
    wait_until(lambda: "ended with exit code 0" in worker.said, timeout=PATIENCE, what="a new process")
    stream.stop(worker)


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
