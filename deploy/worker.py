"""One worker: a role of the stream in a process of its own, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prometheus_client import start_http_server

from index.errors import BadRequest, WriterBusy
from index.home import Home
from index.lock import WriterLock
from index.metrics import Metrics
from streams import app
from streams.cluster import identities
from streams.connection import UNDERSTAND
from streams.letter_topic import TopicLetters
from streams.producer import KafkaInbox, Producer
from streams.register import Register
from streams.roles import applying, understanding

from .assembly import build_pipeline, connection, limits, pace
from .logs import log_plainly
from .measured import measured
from .stopping import run_until_signalled

if TYPE_CHECKING:
    from streams.share import Role

    from .settings import Settings

RoleName = Literal["understand", "apply"]

_log = logging.getLogger("gistream")


def work(settings: Settings, role: RoleName) -> None:
    """Do the work of a role until SIGTERM or SIGINT. Raises what ends it: whoever started it should start it again."""
    log_plainly()
    settings.data.mkdir(parents=True, exist_ok=True)
    kafka, metrics = connection(settings), Metrics()
    register = Register.open(settings.data, kafka, identities)
    with (
        slot_of(settings.data, role) as slot,
        KafkaInbox(kafka, register, limits(settings)) as producer,
        TopicLetters(producer, lambda: producer) as letters,
    ):
        made = _role(settings, role, register, letters, producer, metrics)
        serve_metrics(settings, role, slot, metrics)

        async def worker(stop: asyncio.Event) -> None:
            pulse = app.Pulse(settings.worker_session_seconds, stalled_seconds=settings.worker_stalled_seconds)
            instance = f"{kafka.prefix}{role}-{socket.gethostname()}-{slot}"
            found = app.Worker(made, kafka, instance, _workers(settings.data) / "faust", pulse)
            metrics.watch("gistream_worker_partitions", lambda: found.partitions)
            metrics.watch("gistream_worker_events_under_way", lambda: found.events_under_way)
            await found.run(stop)

        _log.info("%s worker %d begins, as process %d", role, slot, os.getpid())
        started = time.monotonic()
        run_until_signalled(worker)
        _log.info("stopped after %.0f s", time.monotonic() - started)


def _role(
    settings: Settings,
    role: RoleName,
    register: Register,
    letters: TopicLetters,
    producer: Producer,
    metrics: Metrics,
) -> Role:
    home, most = Home(settings.data), limits(settings)
    pipeline = measured(build_pipeline(settings, metrics), metrics)
    if role == UNDERSTAND:
        return understanding(home, register, pipeline, letters, producer, metrics, most)
    return applying(
        home,
        register,
        pipeline,
        letters,
        most,
        pace=pace(settings),
        metrics=metrics,
        renew=settings.rebuild_on_change,
    )


@contextmanager
def slot_of(data: Path, role: RoleName) -> Iterator[int]:
    """The first number that no worker of this role on this machine has: one that is started again finds its own."""
    folder = _workers(data)
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        lock = WriterLock(folder / f"{role}-{socket.gethostname()}-{number}.lock")
        try:
            lock.acquire(take_over=False)
            break
        except WriterBusy:
            number += 1
    try:
        yield number
    finally:
        lock.release()


def metrics_port(first: int, role: RoleName, slot: int) -> int:
    """Where the worker in this slot shows its metrics: each of a machine has its own port, and keeps it."""
    return first and first + 2 * (slot - 1) + (role != UNDERSTAND)


def serve_metrics(settings: Settings, role: RoleName, slot: int, metrics: Metrics) -> None:
    """Show metrics to Prometheus where a port is set. Raises BadRequest where it cannot be had."""
    if settings.worker_metrics_port is None:
        return
    port = metrics_port(settings.worker_metrics_port, role, slot)
    try:
        start_http_server(port, addr=settings.host, registry=metrics.registry)
    except (OSError, OverflowError) as error:
        raise BadRequest(
            f"the metrics of the {role} worker cannot be shown at port {port}: {error}",
            hint="set worker_metrics_port to another",
        ) from error


def _workers(data: Path) -> Path:
    return data / "workers"
