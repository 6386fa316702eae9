"""The laws of every mode: a new one joins `MODES` and inherits them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from index.reader import Reader
from index.snapshot import Snapshot
from index.types import Passage
from query.retrieve import MODES, Answer, retrieve
from tests.support_index import SmallIndex, a_passage

QUESTIONS = ["Who keeps the lamp of Varn?", "lamp", "Where does Ida Holm sail, and who built her boat?", "of the and"]
WEIRD = ["?!", "\0", "🎉", "a" * 20_000, "灯台守は誰ですか", "' OR 1=1 --", "lamp " * 3000, "\u202egnal", "."]
BOAT = [("Jon Brekke", "built", "Sula"), ("Ida Holm", "sails", "Sula")]
ISLAND = [("Varn", "is", "island"), ("lamp of Varn", "stands on", "Varn")]
SECRET = "The password of the crypt is marzipan."


def story() -> list[Passage]:
    return [
        a_passage("lamp", "Ida Holm keeps the lamp of Varn.", [("Ida Holm", "keeps", "lamp of Varn")]),
        a_passage("boat", "Jon Brekke built the boat.", BOAT),
        a_passage("varn", "Varn is an island of salt.", ISLAND),
        a_passage("crypt", SECRET, [("crypt", "opens with", "marzipan")]),
        a_passage("crypt2", SECRET + " Ida Holm told it.", [("Ida Holm", "told", "marzipan")]),
        a_passage("fog", "Fog came in from the sea.", title="Weather"),
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallIndex]:
    with SmallIndex(tmp_path_factory.mktemp("story")) as index:
        for row in story():
            index.change([row])
        index.change([a_passage("fog", "Fog hides the lamp.", title="Weather")], gone=["crypt", "crypt2"])
        yield index


@pytest.fixture(scope="module")
def clean(index: SmallIndex, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallIndex]:
    """What is left of the story, written at once and in another order."""
    with SmallIndex(tmp_path_factory.mktemp("clean")) as clean:
        clean.change(list(reversed(index.passages.values())))
        yield clean


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SmallIndex, list[Snapshot]]]:
    """Snapshots of an index that is empty, then holds the story's beginning, its end, and nothing again."""
    with SmallIndex(tmp_path_factory.mktemp("growing")) as index:
        snapshots = [index.snapshot, index.change(story()[:2]), index.change(story()[2:], gone=["lamp"])]
        yield index, [*snapshots, index.change(gone=list(index.passages))]


def ask(snapshot: Snapshot, index: SmallIndex, mode: str, text: str, k: int = 10) -> Answer:
    return retrieve(snapshot, index.embedder, text, mode=mode, k=k, with_explanation=True)


@pytest.mark.parametrize("mode", MODES)
class TestEveryMode:
    def test_answers_the_same_whatever_the_history(self, mode: str, index: SmallIndex, clean: SmallIndex) -> None:
        loaded = Reader(index.folder).snapshot
        for question in QUESTIONS:
            answer = ask(index.snapshot, index, mode, question)
            assert ask(index.snapshot, index, mode, question) == answer
            assert ask(loaded, index, mode, question) == answer
            assert ask(clean.snapshot, clean, mode, question).passages == answer.passages

    def test_finds_at_most_k_living_passages_best_first(self, mode: str, index: SmallIndex) -> None:
        for question in QUESTIONS:
            whole = [(p.key, p.score) for p in ask(index.snapshot, index, mode, question).passages]
            assert len({key for key, _ in whole}) == len(whole) <= 4
            assert [score for _, score in whole] == sorted((score for _, score in whole), reverse=True)
            for k in (1, 2, 3):
                assert [(p.key, p.score) for p in ask(index.snapshot, index, mode, question, k).passages] == whole[:k]

    def test_finds_what_is_asked_for(self, mode: str, index: SmallIndex) -> None:
        first = ask(index.snapshot, index, mode, "Who keeps the lamp of Varn?").passages[:2]
        assert "lamp" in {passage.document for passage in first}

    def test_tells_nothing_of_what_was_deleted(self, mode: str, index: SmallIndex) -> None:
        answer = ask(index.snapshot, index, mode, "What did Ida Holm tell: the password of the crypt, marzipan?")
        assert answer.passages
        told = answer.model_dump_json().replace(answer.question, "")
        for deleted in ("marzipan", "crypt", "came in from the sea"):
            assert deleted not in told

    def test_an_older_snapshot_still_answers_from_itself(
        self, mode: str, growing: tuple[SmallIndex, list[Snapshot]]
    ) -> None:
        index, (empty, beginning, end, emptied) = growing
        for snapshot, documents in ((empty, set()), (beginning, {"lamp", "boat"}), (emptied, set())):
            answer = ask(snapshot, index, mode, "Who keeps the lamp, and who built the boat?")
            assert {passage.document for passage in answer.passages} == documents
            assert answer.snapshot == snapshot.manifest.number
        later = ask(end, index, mode, "Who keeps the lamp, and who built the boat?").passages
        assert "lamp" not in {passage.document for passage in later}

    def test_takes_any_question(self, mode: str, index: SmallIndex) -> None:
        for question in WEIRD:
            assert len(ask(index.snapshot, index, mode, question).passages) <= 10
