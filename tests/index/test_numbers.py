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
def test_keys_are_numbered_in_order_of_sight(batches: list[list[bytes]]) -> None:
    numbers = Numbers()
    seen: list[bytes] = []
    for batch in batches:
        seen += [k for k in dict.fromkeys(batch) if k not in seen]
        assert numbers.assign(*halves(batch)).tolist() == [seen.index(k) for k in batch]
        assert numbers.keys == seen and len(numbers) == len(seen)
    assert numbers.of(seen).tolist() == list(range(len(seen)))
    assert [numbers.find(k) for k in seen] == list(range(len(seen)))


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
