"""More events than fit into a worker, for a namespace that cannot be indexed: memory stays, and the others go on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from deploy.assembly import build_pipeline
from deploy.worker import metrics_port
from index.types import DocumentEvent
from streams.pipeline import open_namespace
from streams.window import MOST_BYTES
from streams.wire import namespace_partition
from tests.broker.cluster import Cluster
from tests.broker.installation import free_port, metrics
from tests.broker.processes import resident
from tests.support import wait_until

from .streaming import PARTITIONS, PATIENCE, Stream, installation

FLOOD, EACH = 4_000, 24_000
"""Documents, and bytes of each: six times what is held of a partition."""
HELD = MOST_BYTES // EACH
FETCHED = 1024
"""Events on their way into a window that is full: what Faust holds ready, and one more batch."""
GROWTH = {"understand": 2 * PARTITIONS * MOST_BYTES, "apply": 5 * MOST_BYTES}
"""Bytes by which a worker may grow. Events are records and documents at once; the flood is in every partition of
`documents` and in one of `understood`, where a batch that is applied and what a fetch brings come on top.
"""


@pytest.fixture
def stream(kafka: Cluster, kafka_prefix: str, tmp_path: Path) -> Iterator[Stream]:
    settings = {"worker_metrics_port": free_port(), "rebuild_on_change": "false"}
    with installation(tmp_path, kafka.bootstrap, kafka_prefix, 1, **settings) as stream:
        yield stream


def elsewhere(name: str) -> Iterator[str]:
    """Namespaces whose partition is another one."""
    own = namespace_partition(name, PARTITIONS)
    return (other for other in (f"n{number}" for number in count()) if namespace_partition(other, PARTITIONS) != own)


def event(name: str, number: int, size: int = 0) -> DocumentEvent:
    text = f"Ada Moor met Bo Larsen at Pier {number}."
    return DocumentEvent(namespace=name, id=f"d{number}", text=text, metadata={"padding": "x" * size})


@pytest.mark.slow
def test_a_flood_that_cannot_be_indexed_waits_in_kafka(stream: Stream) -> None:
    others = elsewhere("stuck")
    names = [next(others) for _ in range(6)]
    other = stream.settings.model_copy(update={"embedding_dimensions": 16})
    open_namespace(stream.home, "stuck", build_pipeline(other)).close()
    stream.send([event(name, 0) for name in names])
    worker = stream.start()
    stream.settle()
    pids = {role: worker.process_of(role) for role in ("understand", "apply")}
    before = {role: resident(pid) for role, pid in pids.items()}
    port = metrics_port(stream.settings.worker_metrics_port or 0, "apply", 1)
    most = dict(before)

    def under_way() -> float:
        for role, pid in pids.items():
            most[role] = max(most[role], resident(pid))
        return metrics(port)["gistream_worker_events_under_way"]

    for start in range(0, FLOOD, 500):
        stream.send([event("stuck", number, EACH) for number in range(start, start + 500)])
    wait_until(lambda: under_way() >= HELD / 2, timeout=PATIENCE, what="a window that fills")
    flowing = [event(name, number) for number in range(1, 101) for name in names]
    tokens = dict(zip(stream.send(flowing), flowing, strict=True))
    wait_until(lambda: under_way() > 0 and not stream.missing(tokens), timeout=PATIENCE, what="the other partitions")

    assert HELD / 2 <= under_way() <= HELD + FETCHED
    assert "namespace stuck is not being indexed" in worker.said and "started again" not in worker.said
    grown = {role: most[role] - before[role] for role in most}
    assert all(grown[role] < GROWTH[role] for role in grown), f"bytes more than before the flood: {grown}"

    # What was held up is there as soon as its trouble is over.
    stream.stop(worker)
    stream.configure(rebuild_on_change="true")
    stream.start()
    stream.settle()
