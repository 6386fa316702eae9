"""`cogito` against the worked example, against the formulas, and against itself with the other solver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import BadRequest
from index.types import Question
from query.modes.cogito import PAPER, CogitoMode
from query.modes.dense import DenseMode
from query.modes.walk import Walk
from tests.query import naive_cogito
from tests.query.cogito_case import run
from tests.support_index import SmallIndex, a_passage

EXAMPLE = json.loads((Path(__file__).parents[1] / "data/cogito_example.json").read_text())
CASES = [{"name": "as it stands", "params": {}, "expected": EXAMPLE["expected"]}, *EXAMPLE["variants"]]
EXACT = CogitoMode(walk=Walk(solver="exact"))


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """Where `found` lacks or misses something of `expected`; numbers may differ by 1e-6."""
    if isinstance(expected, dict):
        missing = [f"{where}: lacks {key}" for key in expected if key not in found]
        shared = [key for key in expected if key in found]
        return missing + [line for key in shared for line in differences(expected[key], found[key], f"{where}/{key}")]
    if isinstance(expected, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for place, pair in pairs for line in differences(*pair, f"{where}[{place}]")]
    if isinstance(expected, float):
        return [] if abs(expected - found) <= 1e-6 else [f"{where}: {found} and not {expected}"]
    return [] if expected == found else [f"{where}: {found} and not {expected}"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_the_worked_example_is_met_at_every_stage(case: dict[str, Any]) -> None:
    given = EXAMPLE["input"]
    found = run({**given, "params": {**given["params"], **case["params"]}})
    assert differences(case["expected"], found) == []


def asked(index: SmallIndex, text: str) -> Question:
    return Question(text, index.embedder.embed([text])[0], index.embedder.embed([text])[0])


NAMES = st.sampled_from(["ada", "bruno", "chloe", "dmitri", "elena"])
TRIPLES = st.lists(st.tuples(NAMES, st.sampled_from(["met", "painted"]), NAMES), max_size=3)
PASSAGES = st.lists(st.tuples(NAMES, NAMES, TRIPLES), min_size=1, max_size=6)


@settings(max_examples=8)
@given(passages=PASSAGES, gone=st.sets(st.integers(0, 5)), subject=NAMES)
def test_it_follows_the_formulas_over_what_was_not_deleted(
    tmp_path_factory: pytest.TempPathFactory, passages: list[tuple[str, str, Any]], gone: set[int], subject: str
) -> None:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        rows = [a_passage(f"d{i}", f"{a} wrote to {b}", triples) for i, (a, b, triples) in enumerate(passages)]
        index.change(rows)
        snapshot = index.change(gone=[row.document for i, row in enumerate(rows) if i in gone])
        left = list(index.passages.values())
        question = asked(index, f"whom has {subject} met")
        reference = naive_cogito.read(left, index.embedder, question.text)
        numbers = snapshot.kinds.passages.of([row.key for row in left]).tolist()

        exact = EXACT.rank(snapshot, question, 10).trace.readings[0].ranked
        found = dict(zip(exact.passages.tolist(), zip(exact.s_diff, exact.score, strict=True), strict=True))
        assert found.keys() == set(numbers)
        for number, s_diff, score in zip(numbers, *reference, strict=True):
            assert found[number] == pytest.approx((s_diff, score), abs=1e-9)
        assert (np.diff(exact.score) <= 1e-12).all()

        pushed = CogitoMode(walk=Walk(epsilon=1e-5)).rank(snapshot, question, 10).trace.readings[0]
        nodes = np.arange(snapshot.graph.n_rows)
        true = EXACT.rank(snapshot, question, 10).trace.readings[0].spread.of(nodes)
        short = true - pushed.spread.of(nodes)
        assert pushed.spread.error <= 1e-5
        assert (short >= -1e-12).all()
        assert (short <= pushed.spread.error * np.maximum(1, snapshot.graph.totals / 10_000) + 1e-12).all()


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with SmallIndex(tmp_path_factory.mktemp("films")) as index:
        index.change(
            [
                a_passage("d1", "Red Dunes is a film by Mara Voss.", [("Red Dunes", "directed by", "Mara Voss")]),
                a_passage("d2", "She was born in Turku.", [("Mara Voss", "born in", "Turku")]),
                a_passage("d3", "Turku lies in Finland.", [("Turku", "lies in", "Finland")]),
                a_passage("d4", "Juries like quiet films."),
                a_passage("d5", "Blue Harbour was made by Ilan Okoro.", [("Blue Harbour", "made by", "Ilan Okoro")]),
            ]
        )
        yield index


def documents(index: SmallIndex, passages: list[int]) -> list[str]:
    rows = index.snapshot.passage_rows(passages)
    return [rows[passage].document for passage in passages]


@pytest.mark.parametrize("orientation", ["walk", "averaging"])
@pytest.mark.parametrize("rho", [0.05, 0.0])
def test_push_ranks_as_the_exact_solver_does(films: SmallIndex, orientation: Any, rho: float) -> None:
    question = asked(films, "Who directed Red Dunes?")
    rankings = [
        CogitoMode(walk=Walk(orientation=orientation, solver=solver, epsilon=1e-8), passage_seed_weight=rho)
        .rank(films.snapshot, question, 5)
        .found
        for solver in ("push", "exact")
    ]
    assert [scored.passage for scored in rankings[0]] == [scored.passage for scored in rankings[1]]
    assert [s.score for s in rankings[0]] == pytest.approx([s.score for s in rankings[1]], abs=1e-5)


def test_the_walk_reaches_a_passage_that_shares_no_word_with_the_question(films: SmallIndex) -> None:
    found = CogitoMode().rank(films.snapshot, asked(films, "Red Dunes directed by"), 3).found
    assert documents(films, [scored.passage for scored in found])[:2] == ["d1", "d2"]


def test_a_question_that_lights_up_nothing_is_answered_by_similarity_and_says_so(films: SmallIndex) -> None:
    near_no_fact = asked(films, "quiet films")._replace(to_facts=np.zeros(64))
    ranking = CogitoMode().rank(films.snapshot, near_no_fact, 5)
    dense = DenseMode().rank(films.snapshot, near_no_fact, 5)
    assert ranking.notes == {"fallback": "dense"}
    assert [scored.passage for scored in ranking.found] == [scored.passage for scored in dense.found]
    assert ranking.trace.readings[0].spread.nodes.size == 0


def test_two_questions_take_turns_and_the_best_of_the_rest_fills_the_room(films: SmallIndex) -> None:
    parts = [asked(films, "Who directed Red Dunes?"), asked(films, "Who made Blue Harbour?")]
    ranking = CogitoMode().rank_split(films.snapshot, parts, 5)
    first, second = (reading.ranked.passages.tolist() for reading in ranking.trace.readings)
    turns = list(dict.fromkeys([*first[:2], *second[:2]]))
    assert [chosen.passage for chosen in ranking.trace.chosen if not chosen.complement] == turns
    assert [scored.passage for scored in ranking.found][: len(turns)] == turns
    assert len({scored.passage for scored in ranking.found}) == 5


def test_room_for_one_goes_to_the_best_of_all_questions(films: SmallIndex) -> None:
    parts = [asked(films, "Who directed Red Dunes?"), asked(films, "Who made Blue Harbour?")]
    ranking = CogitoMode().rank_split(films.snapshot, parts, 1)
    best = max(score for reading in ranking.trace.readings for score in reading.ranked.score)
    assert [scored.score for scored in ranking.found] == pytest.approx([best])


def test_the_paper_profile_seeds_no_passage(films: SmallIndex) -> None:
    reading = PAPER.rank(films.snapshot, asked(films, "Who directed Red Dunes?"), 5).trace.readings[0]
    assert reading.passage_seeds == ()
    assert (reading.spread.seeds % 2 == 0).all()


@pytest.mark.parametrize("wrong", [{"gamma": 0.0}, {"gamma": 1.5}, {"epsilon": 0.0}])
def test_a_walk_that_would_never_end_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadRequest, match="never ends"):
        Walk(**wrong)  # type: ignore[arg-type]
