"""How far a namespace has got is what its newest files say, living or deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from index.errors import Torn
from index.home import Home
from index.manifest import Manifests
from index.models.hashing import HashingEmbedder
from index.types import DocumentEvent
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline
from streams.position import NOTHING, reached


def test_it_is_that_of_the_newest_snapshot_or_of_the_tombstone(tmp_path: Path) -> None:
    home, pipeline = Home(tmp_path), Pipeline(CONTENT, RulesExtractor(), HashingEmbedder(16))
    assert reached(home, "ns") == NOTHING
    with Log(tmp_path / "log.db") as log, Runner(home, log, pipeline) as runner:
        for number in range(1, 4):
            log.append([DocumentEvent(namespace="ns", id=str(number))])
            assert reached(home, "ns") == (number - 1 or NOTHING)
            runner.drain()
            assert reached(home, "ns") == number
    manifests = Manifests(home.incarnation("ns") / "manifests")
    newest = manifests.path(manifests.numbers()[-1])
    newest.write_bytes(newest.read_bytes()[:-10])
    with pytest.raises(Torn, match=newest.name):
        reached(home, "ns")
    home.bury("ns", {"log": 9})
    assert reached(home, "ns") == 9
