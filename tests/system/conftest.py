"""What only tests of the whole system ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.cluster import Cluster


@pytest.fixture(scope="module")
def broker(kafka_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that may be killed, if it is started again."""
    with Cluster(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster
