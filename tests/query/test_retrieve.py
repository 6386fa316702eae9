"""`retrieve`: what an answer tells, what an explanation tells, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from index.errors import BadRequest, ModelUnavailable, WrongFingerprint
from index.models.hashing import HashingEmbedder
from index.types import Role
from query.limits import MAX_QUESTION
from query.retrieve import retrieve
from tests.support_index import SmallIndex, a_passage


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallIndex]:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        index.change(
            [
                a_passage(
                    "d1",
                    "Ida Holm keeps the lamp.",
                    [("Ida Holm", "keeps", "lamp")],
                    title="Varn",
                    memory="Ida Holm is the keeper of the lamp of Varn.",
                    metadata='{"page": 3}',
                    event_time=-1_000_000,
                ),
                a_passage("d2", "She sails the Sula.", [("Ida Holm", "sails", "Sula")]),
                a_passage("d3", "Fog came in."),
            ]
        )
        yield index


def test_an_answer_tells_all_of_a_passage_and_which_snapshot_it_is_from(index: SmallIndex) -> None:
    answer = retrieve(index.snapshot, index.embedder, "Who keeps the lamp?", k=2, staleness_seconds=1.5)
    found = answer.passages[0]
    assert found.key == index.passages["d1"].key.hex()
    assert (found.document, found.title, found.text) == ("d1", "Varn", "Ida Holm keeps the lamp.")
    assert found.memory == "Ida Holm is the keeper of the lamp of Varn."
    assert found.metadata == {"page": 3}
    assert found.event_time == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert found.why is None
    assert answer.explanation is None
    assert answer.snapshot == index.snapshot.manifest.number
    assert answer.watermark == datetime(1970, 1, 1, 0, 0, 0, index.snapshot.manifest.watermark, UTC)
    assert answer.staleness_seconds == 1.5
    assert answer.passages[1].memory is None


def test_cogito_explains_seeds_activation_and_the_facts_that_led_to_a_passage(index: SmallIndex) -> None:
    answer = retrieve(index.snapshot, index.embedder, "Who keeps the lamp?", mode="cogito", with_explanation=True)
    assert answer.explanation is not None
    (read,) = answer.explanation.questions
    assert read.facts[0].fact == "Ida Holm keeps lamp"
    assert {seed.entity for seed in read.seeds} >= {"Ida Holm", "lamp"}
    assert sum(seed.start for seed in read.seeds) <= 1
    masses = [entity.mass for entity in read.entities]
    assert masses == sorted(masses, reverse=True)
    whys = {found.document: found.why for found in answer.passages}
    second = whys["d2"]
    assert second is not None
    # No word of the second passage is in the question: a name that it shares with a fact led there.
    assert ("Ida Holm keeps lamp", ["Ida Holm"]) in [(fact.fact, fact.via) for fact in second.facts]
    assert second.mass is not None and second.mass > 0
    third = whys["d3"]
    assert third is not None and third.facts == [] and third.entities == []


def test_the_other_modes_explain_cosines_words_and_ranks(index: SmallIndex) -> None:
    def why(mode: str) -> Any:
        answer = retrieve(index.snapshot, index.embedder, "keeps a lamp", mode=mode, with_explanation=True)
        return answer.passages[0].why, answer.passages[0].score

    dense, score = why("dense")
    assert dense.cosine == score
    bm25, score = why("bm25")
    assert {term.term for term in bm25.terms} == {"keep", "lamp"}
    assert sum(term.weight for term in bm25.terms) == pytest.approx(score)
    hybrid, _ = why("hybrid")
    assert hybrid.ranks == {"dense": 1, "bm25": 1}
    assert hybrid.terms == bm25.terms and hybrid.cosine == dense.cosine


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        ({"text": ""}, "is empty"),
        ({"text": " \n\t"}, "is empty"),
        ({"text": "a" * (MAX_QUESTION + 1)}, "20001 characters"),
        ({"text": "a" * 2**20}, "1048576 characters"),
        ({"text": "lamp \ud800"}, "surrogate at character 5"),
        ({"k": 0}, "answer of 0 passages"),
        ({"k": 201}, "1 to 200"),
        ({"mode": "magic"}, "the modes are fused"),
    ],
)
def test_what_makes_no_sense_is_refused_and_says_what_would(
    index: SmallIndex, refused: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadRequest, match=says):
        retrieve(index.snapshot, index.embedder, **{"text": "lamp", **refused})


def test_another_embedder_than_that_of_the_index_is_refused(index: SmallIndex) -> None:
    with pytest.raises(WrongFingerprint, match=r"made with hashing:\d+:64 .* hashing:\d+:32"):
        retrieve(index.snapshot, HashingEmbedder(32), "lamp")


class Unavailable(HashingEmbedder):
    def embed(self, texts: Any, role: Role = "text") -> NDArray[np.float32]:
        raise ModelUnavailable("the endpoint did not answer")


def test_words_are_found_while_the_embedder_is_away(index: SmallIndex) -> None:
    away = Unavailable(64)
    assert retrieve(index.snapshot, away, "lamp", mode="bm25").passages
    with pytest.raises(ModelUnavailable):
        retrieve(index.snapshot, away, "lamp", mode="dense")
