"""Tests of the incidence algebra: every operation against a Counter of pairs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from index.graph.incidence import SCHEMA, Incidence
from index.types import Key

from .naive import Entries, entries

# Few values in either half, with the top bit too, so that keys share halves and compare as unsigned bytes.
half = st.sampled_from([0, 1, 2**63, 2**64 - 1]).map(lambda number: number.to_bytes(8))
any_key = st.tuples(half, half).map(b"".join)
listed = st.lists(st.tuples(any_key, any_key, st.integers(-2, 2)), max_size=30)


def made(items: list[tuple[Key, Key, int]]) -> Incidence:
    rows, cols = [row for row, _, _ in items], [col for _, col, _ in items]
    return Incidence.of(rows, cols, [weight for _, _, weight in items], [spelled(col) for col in cols])


def spelled(col: Key) -> str:
    return f"spelling {col.hex()}"


def counted(*lists: list[tuple[Key, Key, int]]) -> Entries:
    sums: Entries = Counter()
    for row, col, weight in (item for items in lists for item in items):
        sums[row, col] += weight
    return Counter({pair: weight for pair, weight in sums.items() if weight})


def checked(incidence: Incidence) -> Entries:
    """Entries, after checking that every text is still beside its column."""
    assert incidence.text.to_pylist() == [spelled(col) for col in incidence.cols()]
    return entries(incidence)


@given(listed)
def test_entries_in_any_order_are_consolidated(items: list[tuple[Key, Key, int]]) -> None:
    assert checked(made(items)) == counted(items)
    assert checked(made(items[::-1])) == counted(items)


@given(listed, listed, listed)
def test_addition_is_the_sum_of_counters(
    a: list[tuple[Key, Key, int]], b: list[tuple[Key, Key, int]], c: list[tuple[Key, Key, int]]
) -> None:
    x, y, z = made(a), made(b), made(c)
    assert checked(x + y) == checked(y + x) == counted(a, b)
    assert checked((x + y) + z) == checked(x + (y + z)) == counted(a, b, c)
    assert len(x + -x) == 0
    assert checked(-(x + y)) == Counter({pair: -weight for pair, weight in counted(a, b).items()})


@given(listed, st.sets(any_key))
def test_select_gives_the_entries_of_the_named_rows(items: list[tuple[Key, Key, int]], rows: set[Key]) -> None:
    wanted = {pair: weight for pair, weight in counted(items).items() if pair[0] in rows}
    assert checked(made(items).select(list(rows))) == wanted


@given(listed)
def test_a_batch_holds_everything(items: list[tuple[Key, Key, int]]) -> None:
    batch = made(items).to_batch()
    assert batch.schema == SCHEMA
    assert checked(Incidence.from_batch(batch)) == counted(items)


@given(listed)
def test_the_empty_set_is_the_neutral_element(items: list[tuple[Key, Key, int]]) -> None:
    x, nothing = made(items), Incidence.empty()
    assert len(nothing) == 0
    assert checked(x + nothing) == checked(nothing + x) == counted(items)
    assert entries(nothing.select([bytes(16)])) == entries(-nothing) == {}


def test_without_texts_the_column_is_null() -> None:
    incidence = Incidence.of([bytes(16)], [bytes(16)], [1])
    assert (incidence + Incidence.of([b"\1" * 16], [bytes(16)], [1])).text.to_pylist() == [None, None]
