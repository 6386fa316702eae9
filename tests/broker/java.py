"""Kafka as Java runs it: the jars that tests/tools.sh fetches, and an empty broker's folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "kafka"
LIBRARIES = BUILD / "libs"

USER, PASSWORD = "app", "app-secret"
"""Who may come in where a cluster asks for a password."""

_CLUSTER = "Z2lzdHJlYW0tdGVzdHMtMQ"
"""Of every cluster: 16 bytes in base64, as Kafka wants them."""
_SMALL = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]


def installed() -> bool:
    return shutil.which("java") is not None and any(LIBRARIES.glob("kafka_2*.jar"))


def command(main: str, *arguments: str) -> list[str]:
    """The command that runs a class of Kafka in a small Java, which dies with the thread that starts it.

    Only Linux has setpriv; elsewhere a process that is killed leaves its brokers behind.
    """
    bound = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
    return [*bound, "java", *_SMALL, logging, "-cp", f"{LIBRARIES}/*", main, *arguments]


def lay_out(data: Path, *, node: int, properties: Path) -> None:
    """Make `data` the folder of a broker that has not started yet, with `USER` known to SCRAM-SHA-256.

    Raises:
        RuntimeError: Kafka refused, with its words.
    """
    template = BUILD / "formatted" / str(node)
    # Made once for each number of a node, since a Java that starts costs seconds; it takes no more of the properties.
    if template.is_dir():
        shutil.copytree(template, data)
        return
    _format(data, properties)
    template.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=template.parent) as fresh:
        copied = shutil.copytree(data, Path(fresh, "data"))
        # Somebody else may have been quicker, and theirs is as good.
        with suppress(OSError):
            os.rename(copied, template)


def _format(data: Path, properties: Path) -> None:
    scram = f"SCRAM-SHA-256=[name={USER},password={PASSWORD}]"
    asked = ["format", "--cluster-id", _CLUSTER, "--config", str(properties), "--add-scram", scram]
    made = subprocess.run(command("kafka.tools.StorageTool", *asked), capture_output=True, text=True, timeout=60)
    if made.returncode != 0 or not (data / "meta.properties").is_file():
        raise RuntimeError(f"Kafka could not format {data}:\n{made.stdout}{made.stderr}")
