"""Tests of dense numbers and of the arrays that grow with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.keys import halves, key
from index.numbers import Grown, Numbers

some_keys = st.lists(st.integers(0, 9).map(lambda number: key("row", str(number))), max_size=8)


@given(st.lists(some_keys, max_size=5))
def test_every_key_has_one_dense_number_for_ever(batches: list[list[bytes]]) -> None:
    numbers = Numbers()
    known: dict[bytes, int] = {}
    for batch in batches:
        for given_key, number in zip(batch, numbers.assign(*halves(batch)).tolist(), strict=True):
            assert known.setdefault(given_key, number) == number
        assert sorted(known.values()) == list(range(len(known))) and len(numbers) == len(known)
        assert [known[k] for k in numbers.keys] == list(range(len(known)))
    assert numbers.of(list(known)).tolist() == list(known.values())
    assert [numbers.find(k) for k in known] == list(known.values())


def test_keys_that_share_a_half_are_told_apart() -> None:
    high, low = np.zeros(6, np.uint64), np.array([1, 2, 1, 2, 3, 1], np.uint64)
    numbers = Numbers().assign(high, low).tolist()
    assert numbers[0] == numbers[2] == numbers[5] and numbers[1] == numbers[3] and len(set(numbers)) == 3


def test_a_key_without_a_number() -> None:
    assert Numbers().find(bytes(16)) is None
    with pytest.raises(KeyError):
        Numbers().of([bytes(16)])


@given(st.lists(st.integers(0, 900), min_size=1, max_size=6))
def test_a_version_keeps_its_rows_while_later_ones_grow(growth: list[int]) -> None:
    grown = Grown(2, np.int64)
    versions = []
    length = 0
    for more in growth:
        rows = np.arange(length, length + more)
        grown.fill(rows, np.stack([rows, -rows], axis=1))
        length += more
        versions.append(grown.view(length))
    for version, end in zip(versions, np.cumsum(growth), strict=True):
        assert version.tolist() == [[row, -row] for row in range(end)]


def test_rows_not_written_yet_are_zero() -> None:
    assert Grown(1, np.uint64).view(1_500).sum() == 0
