"""Runs a Kafka cluster in a temporary folder until it is told to stop: `make kafka`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from .cluster import Cluster
from .java import installed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.broker", description=__doc__)
    parser.add_argument("--nodes", type=int, choices=[1, 3], default=1)
    parser.add_argument("--port", type=int, help="of the first node; the others have the next ones")
    asked = parser.parse_args()
    if not installed():
        sys.exit("Kafka is not installed (Java and its jars): make tools")
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    with (
        tempfile.TemporaryDirectory(prefix="gistream-kafka-") as folder,
        Cluster(Path(folder), nodes=asked.nodes, port=asked.port) as cluster,
    ):
        print(f"export GISTREAM_KAFKA_BOOTSTRAP={cluster.bootstrap}", flush=True)
        while True:
            signal.pause()


def _stop(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
