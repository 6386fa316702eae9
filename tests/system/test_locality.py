"""An edit in the middle of a long document is read as the few passages around it, counted at the extractor."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from index.home import Home
from index.models.hashing import HashingEmbedder
from index.types import DocumentEvent, Extraction
from streams.chunk import CONTENT, chunk
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

PASSAGES = 200
POSITIONS = 25


class CountingExtractor(RulesExtractor):
    """The rules, and how many passages they were asked to read."""

    def __init__(self) -> None:
        self.read = 0

    def extract(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        self.read += len(passages)
        return super().extract(passages)


def sentences(count: int, chance: random.Random) -> list[str]:
    words = [
        "river",
        "stone",
        "Tarn",
        "Ellery",
        "north",
        "built",
        "watched",
        "Quill",
        "old",
        "lock",
        "Brock",
        "water",
        "under",
        "long",
    ]
    return [" ".join(chance.choices(words, k=chance.randrange(6, 22))).capitalize() + "." for _ in range(count)]


def test_one_inserted_sentence_is_read_as_at_most_three_passages(tmp_path: Path) -> None:
    chance = random.Random(1931)
    body = sentences(1_600, chance)
    assert len(chunk(" ".join(body), CONTENT)) >= PASSAGES
    extractor = CountingExtractor()
    pipeline = Pipeline(CONTENT, extractor, HashingEmbedder(64))
    counts = []
    with Log(tmp_path / "log.db") as log, Runner(Home(tmp_path), log, pipeline) as runner:

        def read(text: str) -> int:
            before = extractor.read
            log.append([DocumentEvent(namespace="long", id="book", title="A book", text=text)])
            runner.drain()
            return extractor.read - before

        assert read(" ".join(body)) >= PASSAGES
        for _ in range(POSITIONS):
            body.insert(chance.randrange(len(body) // 4, 3 * len(body) // 4), sentences(1, chance)[0])
            counts.append(read(" ".join(body)))
    assert median(counts) <= 3, counts
    assert max(counts) <= 12, counts
