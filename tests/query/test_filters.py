"""Filters: k passages that match, in the order of the mode, whatever the index went through."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from index.attributes import Distinct, Mask
from index.clock import from_microseconds, to_microseconds
from index.errors import BadRequest
from index.reader import Reader
from index.snapshot import Snapshot
from index.types import Passage, Question, Role
from query.filters import Condition, Filter
from query.modes.base import Ranking, ranked
from query.modes.cogito import CogitoMode
from query.modes.cognirank import candidates, cogni_rank
from query.modes.dense import DenseMode
from query.retrieve import MODES, retrieve
from tests.support_index import SmallIndex, a_passage

NAMES = ("Ida Holm", "Jon Brekke", "Varn", "Sula", "Ada Quill")
QUESTIONS = ("Who sails to Varn?", "Ida Holm", "boat 7", "What did Jon Brekke build for Ada Quill?")
DAY = 86_400_000_000


def a_document(number: int, revision: int = 0) -> Passage:
    who, other = NAMES[number % 5], NAMES[(number * 3 + 1 + revision) % 5]
    metadata: dict[str, Any] = {"page": number % 7, "shelf": ["north", "south"][number % 2], "revision": revision}
    if number % 3:
        metadata["tags"] = ["boat", f"tag{number % 4}"]
    return a_passage(
        f"d{number}",
        f"{who} sails boat {number} to {other}.",
        [(who, "sails to", other)],
        metadata=json.dumps(metadata, sort_keys=True, separators=(",", ":")),
        event_time=None if number % 5 == 0 else (number % 11 - 5) * DAY,
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallIndex]:
    """Three hundred documents, some of which were changed or deleted after they were asked for."""
    with SmallIndex(tmp_path_factory.mktemp("index")) as index:
        index.change([a_document(number) for number in range(200)])
        assert len(index.snapshot.attributes.event_times) == 200
        index.change([a_document(number, 1) for number in range(0, 40)], gone=["d50", "d51"])
        index.change([a_document(number) for number in range(200, 300)])
        yield index


def moments(days: st.SearchStrategy[int]) -> st.SearchStrategy[datetime]:
    return days.map(lambda day: from_microseconds(day * DAY))


values = st.sampled_from(["north", "south", "boat", "tag1", "", 0, 1, 3, 6, 2.5, True, None])
bounds = st.sampled_from([0, 2, 3.5, 6, "north", "tag2", "a"])
conditions = st.one_of(
    st.builds(lambda value: Condition(equals=value), values),
    st.builds(lambda found: Condition(one_of=tuple(found)), st.lists(values, max_size=3)),
    st.builds(lambda found: Condition(exists=found), st.booleans()),
    st.builds(lambda low, high: Condition(at_least=low, below=high), bounds, bounds),
    st.builds(lambda low, high: Condition(above=low, at_most=high), bounds, bounds),
)
filters = st.builds(
    Filter,
    since=st.none() | moments(st.integers(-6, 6)),
    until=st.none() | moments(st.integers(-6, 6)),
    where=st.dictionaries(st.sampled_from(["page", "shelf", "tags", "revision", "nothing"]), conditions, max_size=2),
    phrase=st.none() | st.none() | st.sampled_from(["to VARN", "Holm sails", "boat 7", "Sula to", "sails, boat"]),
)


def passes(filter: Filter, row: Passage) -> bool:
    """The same, said plainly."""
    if filter.since is not None and (row.event_time is None or row.event_time < to_microseconds(filter.since)):
        return False
    if filter.until is not None and (row.event_time is None or row.event_time > to_microseconds(filter.until)):
        return False
    if filter.phrase is not None and f" {words(filter.phrase)} " not in f" {words(row.text)} ":
        return False
    metadata = json.loads(row.metadata)
    return all(meets(condition, key, metadata) for key, condition in filter.where.items())


def words(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def meets(condition: Condition, key: str, metadata: dict[str, Any]) -> bool:
    given = condition.model_dump(exclude_unset=True)
    if "exists" in given:
        return (key in metadata) is given["exists"]
    if key not in metadata:
        return False
    held = metadata[key] if isinstance(metadata[key], list) else [metadata[key]]
    return any(all(holds(test, value, wanted) for test, wanted in given.items()) for value in held)


def holds(test: str, value: Any, wanted: Any) -> bool:
    if test == "one_of":
        return any(holds("equals", value, one) for one in wanted)
    if isinstance(value, bool) or isinstance(wanted, bool) or value is None or wanted is None:
        return test == "equals" and value is wanted
    if isinstance(value, str) != isinstance(wanted, str):
        return False
    answers: dict[str, bool] = {
        "equals": value == wanted, "above": value > wanted, "at_least": value >= wanted,
        "below": value < wanted, "at_most": value <= wanted,
    }  # fmt: skip
    return answers[test]


def mask_of(filter: Filter, snapshot: Snapshot, rows: Sequence[Passage]) -> Mask:
    expected = np.zeros(len(snapshot.lengths), np.bool_)
    for row in rows:
        number = snapshot.kinds.passages.find(row.key)
        assert number is not None
        expected[number] = passes(filter, row)
    return expected


def ask(index: SmallIndex, text: str) -> Question:
    [vector] = index.embedder.embed([text]).astype(np.float64)
    return Question(text, vector, vector)


@given(filter=filters)
def test_a_filter_means_what_it_says(index: SmallIndex, filter: Filter) -> None:
    snapshot, rows = index.snapshot, list(index.passages.values())
    mask, living = filter.mask(snapshot), snapshot.live_passages
    expected = mask_of(filter, snapshot, rows)[living]
    assert (mask is None and expected.all()) or (mask is not None and (mask[living] == expected).all())
    again = Filter.model_validate_json(filter.model_dump_json(exclude_unset=True, by_alias=True))
    assert again == filter


@pytest.mark.parametrize("mode", ["dense", "bm25"])
@given(filter=filters, text=st.sampled_from(QUESTIONS), k=st.sampled_from([1, 5, 40]))
def test_a_filtered_ranking_is_the_whole_ranking_without_the_others(
    index: SmallIndex, mode: str, filter: Filter, text: str, k: int
) -> None:
    snapshot, question = index.snapshot, ask(index, text)
    allowed = mask_of(filter, snapshot, list(index.passages.values()))
    whole = MODES[mode].rank(snapshot, question, 1000).found
    expected = tuple(scored for scored in whole if allowed[scored.passage])[:k]
    assert ranked(MODES[mode], snapshot, question, k, filter.mask(snapshot)).found == expected


@given(filter=filters, text=st.sampled_from(QUESTIONS))
def test_cogito_walks_through_all_and_ranks_what_is_eligible(index: SmallIndex, filter: Filter, text: str) -> None:
    snapshot, question, mode = index.snapshot, ask(index, text), CogitoMode()
    allowed = mask_of(filter, snapshot, list(index.passages.values()))
    reading = mode.rank(snapshot, question, 10).trace.readings[0]
    deep = candidates(snapshot, reading.spread, question.to_passages, 1000)
    among = deep[allowed[deep]][: mode.candidate_k]
    expected = cogni_rank(snapshot, among, reading.spread, question.to_passages, mode.epsilon, mode.delta).scored()[:10]
    assert list(ranked(mode, snapshot, question, 10, filter.mask(snapshot)).found) == expected


@pytest.mark.parametrize("mode", MODES)
@given(filter=filters, text=st.sampled_from(QUESTIONS))
def test_an_answer_is_full_where_enough_passages_match(index: SmallIndex, mode: str, filter: Filter, text: str) -> None:
    rows = {id: row for id, row in index.passages.items() if passes(filter, row)}
    answer = retrieve(
        index.snapshot,
        index.embedder,
        text,
        mode=mode,
        k=12,
        eligible=filter.mask(index.snapshot),
        with_explanation=True,
    )
    assert {passage.document for passage in answer.passages} <= rows.keys()
    # bm25 finds only what holds a word of the question.
    assert len(answer.passages) == min(12, len(rows)) or mode == "bm25"
    assert all(passage.why is not None for passage in answer.passages)


class Unaware:
    """A mode that ranks every passage and does not look at the mask."""

    roles: ClassVar[tuple[Role, ...]] = DenseMode.roles
    depths: list[int]

    def __init__(self) -> None:
        self.depths = []

    def rank(self, snapshot: Snapshot, question: Question, k: int, eligible: Mask | None = None) -> Ranking[object]:
        self.depths.append(k)
        return DenseMode().rank(snapshot, question, k)


@given(filter=filters, text=st.sampled_from(QUESTIONS))
def test_a_mode_that_ranks_everything_needs_no_code(index: SmallIndex, filter: Filter, text: str) -> None:
    snapshot, question, mode = index.snapshot, ask(index, text), Unaware()
    mask = filter.mask(snapshot)
    assert ranked(mode, snapshot, question, 3, mask).found == ranked(DenseMode(), snapshot, question, 3, mask).found
    assert mode.depths == [3 * 8**turn for turn in range(len(mode.depths))]
    assert len(mode.depths) == 1 or mask is not None


@pytest.mark.parametrize("mode", MODES)
def test_what_an_answer_may_not_hold_still_leads_on(mode: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The filter decides what may be answered: a fact of a later passage may lead to an earlier one."""
    with SmallIndex(tmp_path_factory.mktemp("leading")) as index:
        index.change(
            [
                a_passage("early", "Ida Holm was born in Varn.", [("Ida Holm", "born in", "Varn")], event_time=0),
                a_passage("late", "Ida Holm keeps the lamp.", [("Ida Holm", "keeps", "lamp")], event_time=5 * DAY),
            ]
        )
        before = Filter(until=datetime(1970, 1, 2, tzinfo=UTC))
        answer = retrieve(
            index.snapshot, index.embedder, "Who keeps the lamp?", mode=mode, eligible=before.mask(index.snapshot)
        )
        found = [passage.document for passage in answer.passages]
        # Only cogito has anything to walk over, and no word of the question is in the early passage.
        assert found == ([] if mode == "bm25" else ["early"])


def test_only_what_changed_is_read_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    with SmallIndex(tmp_path_factory.mktemp("growing")) as growing:
        first = growing.change([a_document(number) for number in range(9)])
        before = first.attributes
        second = growing.change([a_document(2, 1)], gone=["d3"])
        after = second.attributes
        assert after.values is before.values and len(after.values) == 10
        filter = Filter(where={"revision": Condition(equals=1)})
        for snapshot, expected in ((first, set()), (second, {"d2"})):
            mask = filter.mask(snapshot)
            assert mask is not None
            rows = snapshot.passage_rows(number for number in snapshot.live_passages.tolist() if mask[number])
            assert {row.document for row in rows.values()} == expected


def test_going_back_brings_back_what_was_in_a_fragment_that_is_known(tmp_path: Path) -> None:
    filter = Filter(where={"revision": Condition(equals=0)})
    with SmallIndex(tmp_path) as index:
        first = index.change([a_document(1), a_document(2), a_document(3)])
        index.change([a_document(2, 1)], gone=["d3"])
        reader = Reader(index.folder)

        def found(snapshot: Snapshot) -> set[str]:
            mask = filter.mask(snapshot)
            assert mask is not None
            rows = snapshot.passage_rows(number for number in snapshot.live_passages.tolist() if mask[number])
            return {row.document for row in rows.values()}

        assert found(reader.snapshot) == {"d1"}
        assert found(reader.older(first.manifest)) == {"d1", "d2", "d3"}
        index.change([a_document(4), a_document(3)])
        assert found(reader.refresh()) == {"d1", "d3", "d4"}


def test_no_text_is_put_to_a_test_twice() -> None:
    seen: list[str] = []

    def test(text: str) -> bool:
        seen.append(text)
        return text > "b"

    values = Distinct()
    assert values.assign(pa.chunked_array([["a", "b"], ["a", "c"]])).tolist() == [0, 1, 0, 2]
    assert values.passing("t", test).tolist() == [False, False, True]
    assert values.assign(pa.chunked_array([["c", "d"]])).tolist() == [2, 3]
    assert values.passing("t", test).tolist() == [False, False, True, True]
    assert seen == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"where": {"page": {}}}, "give at least one of"),
        ({"where": {"page": {"exists": False, "equals": 1}}}, "no value to compare"),
        ({"where": {"page": {"above": True}}}, "where.page"),
        ({"where": {"page": {"like": "x"}}}, "like"),
        ({"where": {"page": 3}}, "where.page"),
        ({"until": "tomorrow"}, "ISO 8601"),
        ({"until": 3}, "until"),
        ({"since": "9999-12-31T23:59:59-23:00"}, "ISO 8601"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Filter.model_validate(wrong)


def test_a_phrase_without_a_word_is_refused(index: SmallIndex) -> None:
    with pytest.raises(BadRequest, match="has no word"):
        Filter(phrase="?!").mask(index.snapshot)


def test_a_mask_is_as_long_as_its_snapshot_also_where_that_is_reached_again(index: SmallIndex) -> None:
    """By way of another snapshot, which has given more numbers meanwhile."""
    snapshot, filter = index.snapshot, Filter(where={"revision": Condition(equals=1)})
    longer = replace(snapshot, lengths=np.concatenate((snapshot.lengths, np.zeros(3, np.int64))))
    for one in (snapshot, longer, snapshot):
        mask = filter.mask(replace(one))
        assert mask is not None and len(mask) == len(one.lengths) and mask.sum() == 40
