"""Kafka for every test that asks for it; without Java or its jars such a test is skipped, and fails where CI runs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import without_tool

from .cluster import Cluster
from .java import installed


@pytest.fixture(scope="session")
def kafka_installed() -> None:
    """For a test that starts a cluster of its own."""
    if not installed():
        without_tool("Kafka (Java and its jars)")


@pytest.fixture(scope="session")
def kafka(kafka_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The one broker of this session. A test that kills a node starts a cluster of its own."""
    with Cluster(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture
def kafka_prefix() -> str:
    """What names of topics and groups begin with, so that no test sees those of another."""
    return f"t{secrets.token_hex(4)}-"


@pytest.fixture
def three_nodes(kafka_installed: None, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of three nodes for one test, which may kill any of them."""
    with Cluster(tmp_path / "kafka", nodes=3) as cluster:
        yield cluster
