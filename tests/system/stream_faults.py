"""What befalls workers and brokers: each fault happens to a stream that is being sent to, and leaves it working."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tests.broker.cluster import Cluster

from .streaming import Stream, Where


@dataclass(frozen=True, slots=True)
class Scene:
    """A stream with two workers at least, the broker of its own, and chance."""

    stream: Stream
    broker: Cluster
    chance: random.Random


Fault = Callable[[Scene], None]


def kill_worker(scene: Scene) -> None:
    """A machine dies, and another takes its place."""
    scene.stream.kill(scene.chance.choice(scene.stream.workers))
    scene.stream.start()


def kill_role(scene: Scene) -> None:
    """A process of each role dies; its supervisor starts it again."""
    for role in scene.chance.sample(["understand", "apply"], 2):
        scene.stream.kill_role(scene.chance.choice(scene.stream.workers), role)


def kill_broker(scene: Scene) -> None:
    """The only broker dies, and is started again. A worker that starts meanwhile would end with the reason."""
    for worker in scene.stream.workers:
        worker.ready()
    scene.broker.kill(1)
    scene.broker.start(1)


def kill_all(scene: Scene) -> None:
    """The broker dies in mid-batch, and every worker's processes before it is back."""
    for worker in scene.stream.workers:
        worker.ready()
    scene.broker.kill(1)
    # Time for a worker to note what it takes for done.
    time.sleep(1 + 2 * scene.chance.random())
    for worker in scene.stream.workers:
        for role in ("understand", "apply"):
            scene.stream.kill_role(worker, role)
    scene.broker.start(1)


def join_and_leave(scene: Scene) -> None:
    """A third worker comes in mid-batch, and one of the others goes."""
    stream = scene.stream
    leaving = scene.chance.choice(stream.workers)
    stream.start().ready()
    stream.stop(leaving)


def freeze(scene: Scene) -> None:
    """A worker stops until another has done its work, and wakes up with its window full of it."""
    stream = scene.stream
    worker = scene.chance.choice(stream.workers)
    frozen = [worker.process_of(role) for role in ("apply", "understand")]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        # What was sent by now lies in its partitions, too.
        stream.settle(dict(stream.sent))
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)


def forget(where: Where) -> Fault:
    """Kafka holds other offsets than the ledgers when the workers come back."""

    def forgotten(scene: Scene) -> None:
        stream = scene.stream
        leaving = list(stream.workers)
        for worker in leaving:
            worker.ready()
        stream.stop(*leaving)
        stream.commit(where)
        for _ in leaving:
            stream.start()

    return forgotten


def start_over(scene: Scene) -> None:
    """Everything is read from its beginning again."""
    stream = scene.stream
    leaving = list(stream.workers)
    stream.stop(*leaving)
    stream.start("all", "--from-start")
    for _ in leaving[1:]:
        stream.start()


def roll(scene: Scene) -> None:
    """One worker after the other is replaced, as an upgrade does it."""
    for leaving in list(scene.stream.workers):
        scene.stream.stop(leaving)
        scene.stream.start().ready()


FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {
        "worker-killed": kill_worker,
        "role-killed": kill_role,
        "broker-killed": kill_broker,
        "all-killed": kill_all,
        "worker-joins-and-leaves": join_and_leave,
        "worker-frozen": freeze,
        "offsets-lost": forget("nothing"),
        "offsets-back": forget("beginning"),
        "offsets-ahead": forget("end"),
        "started-over": start_over,
        "workers-replaced": roll,
    }
)
