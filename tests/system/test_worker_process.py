"""`gistream worker` as an operator meets it: what it refuses, what it survives, and what dies with it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.exits import Exit
from tests.broker.cluster import Cluster
from tests.broker.processes import lives
from tests.support import GISTREAM, environment, wait_until

from .stream_histories import History, Sending
from .streaming import PATIENCE, Stream, installation

COMMAND = (*GISTREAM, "worker")


@pytest.fixture
def stream(kafka: Cluster, kafka_prefix: str, tmp_path: Path) -> Iterator[Stream]:
    with installation(tmp_path, kafka.bootstrap, kafka_prefix, 1) as stream:
        yield stream


def refused(data: Path, bootstrap: str, *arguments: str) -> str:
    """What a worker says that ends at once, since nothing can be reached."""
    given = environment(data=data, kafka_bootstrap=bootstrap, kafka_prefix="never-made-")
    ended = subprocess.run(
        [*COMMAND, *arguments], env=given, cwd=data, capture_output=True, text=True, timeout=PATIENCE
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
def test_a_broker_that_is_away_for_20_seconds(
    kafka_installed: None, kafka_prefix: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same supervisor goes on by itself, and so does whoever sends."""
    with (
        Cluster(tmp_path_factory.mktemp("kafka")) as broker,
        installation(tmp_path, broker.bootstrap, kafka_prefix, 2) as stream,
    ):
        worker = stream.start()
        worker.ready()
        with Sending(stream, History(2)):
            stream.wait_for_more_than(20)
            broker.kill(1)
            # Nothing tells that a broker has been away for long: only time does.
            time.sleep(20)
            broker.start(1)
        stream.settle()
        stream.check()
        assert worker.lives and len(worker.children()) == 2
        # It ends, and ends well, while nobody answers it.
        broker.kill(1)
        stream.stop(worker)


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
