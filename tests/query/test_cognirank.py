"""Merging the rankings of sub-questions, and which of equally near facts count."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from query.modes.activation import nearest_facts
from query.modes.cognirank import Ranked, merge
from tests.support_index import SmallIndex, a_passage


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallIndex]:
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        # The two facts have one vector: a currency sign is part of a name and no word.
        index.change([a_passage("d0", "Ada owes.", [("ada", "owes", "bo$")])])
        others = [a_passage(f"e{i}", "Bo.") for i in range(6)]
        index.change([a_passage("d1", "Ada owes.", [("ada", "owes", "bo")]), *others])
        yield index


def ranked(*scores: tuple[int, float]) -> Ranked:
    passages, score = np.array([p for p, _ in scores], np.int64), np.array([s for _, s in scores])
    return Ranked(passages, score, score, score, score, score)


def test_each_question_gives_its_share_and_the_best_of_the_rest_fills_up(index: SmallIndex) -> None:
    first = ranked((0, 0.9), (1, 0.8), (2, 0.3), (3, 0.2))
    second = ranked((0, 0.7), (4, 0.6), (3, 0.5), (5, 0.4), (2, 0.1))
    chosen = merge(index.snapshot, [first, second], 5)
    # The second question's first passage is taken already and is not replaced; passage 3 counts with its better score.
    assert [(c.passage, c.score, c.ranking, c.complement) for c in chosen] == [
        (0, 0.9, 0, False),
        (1, 0.8, 0, False),
        (4, 0.6, 1, False),
        (3, 0.5, 1, True),
        (5, 0.4, 1, True),
    ]


@pytest.mark.parametrize(("k", "shares"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)])
def test_a_share_leaves_room_for_at_least_one_more(index: SmallIndex, k: int, shares: int) -> None:
    rankings = [ranked((0, 0.9), (1, 0.8), (2, 0.7)), ranked((3, 0.6), (4, 0.5), (5, 0.4))]
    chosen = merge(index.snapshot, rankings, k)
    assert len(chosen) == k
    assert [c.ranking for c in chosen if not c.complement] == [0] * shares + [1] * shares


def test_ties_are_runs_of_equal_score_and_similarity() -> None:
    assert ranked((7, 0.5), (3, 0.5 + 1e-14), (1, 0.4), (9, 0.2), (2, 0.2)).ties() == [[7, 3], [9, 2]]
    assert ranked().ties() == []


def test_equally_near_facts_come_in_order_of_their_normal_forms(index: SmallIndex) -> None:
    snapshot = index.snapshot
    q = index.embedder.embed(["whom ada owes"])[0]
    both = nearest_facts(snapshot, q, 5)
    assert both[0].similarity == both[1].similarity
    rows = snapshot.fact_rows([fact for fact, _ in both])
    assert [rows[fact].norms[2] for fact, _ in both] == ["bo", "bo$"]
    assert nearest_facts(snapshot, q, 1) == both[:1]
