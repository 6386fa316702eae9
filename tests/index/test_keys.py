"""Tests of content addresses: fields cannot run into each other, and halves compare like the keys they come from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.keys import entity_key, fact_key, halves, key, passage_key, term_key, whole

fields = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=4)
any_keys = st.lists(st.binary(min_size=16, max_size=16))


@given(fields, fields)
def test_addresses_are_equal_only_for_equal_fields(one: list[str], other: list[str]) -> None:
    assert (key("text", *one) == key("text", *other)) == (one == other)
    assert len(key("text", *one)) == 16


@pytest.mark.parametrize(
    ("one", "other"),
    [(("ab", "c"), ("a", "bc")), (("a",), ("a", "")), (("",), ()), (("a\0b",), ("a", "b")), (("é",), ("e\u0301",))],
)
def test_fields_do_not_run_into_each_other(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert key("text", *one) != key("text", *other)


def test_kinds_are_kept_apart() -> None:
    assert len({entity_key("ada"), term_key("ada"), key("document", "ada"), key("surface", "ada")}) == 4


def test_addresses_never_change() -> None:
    """They are in every index on a disk: another value is another format."""
    assert key("text", "Ada", "").hex() == "25da9c770b77c77a510ee1cf1d2eb42d"
    assert fact_key("ada", "met", "bo").hex() == "544c79cdf608465eb590891a9f7f84d1"
    assert passage_key("notes", "d1", "Text.", 1).hex() == "cc440939db8881482317531910cf6674"


def test_twins_of_a_document_have_two_keys() -> None:
    assert passage_key("n", "d", "same", 0) != passage_key("n", "d", "same", 1)
    assert passage_key("n", "d", "same", 0) != passage_key("n", "e", "same", 0) != passage_key("m", "e", "same", 0)


@given(any_keys)
def test_halves_are_undone_by_whole_and_sort_like_bytes(some: list[bytes]) -> None:
    high, low = halves(some)
    assert whole(high, low) == some
    pairs = zip(high.tolist(), low.tolist(), some, strict=True)
    assert [taken for _, _, taken in sorted(pairs)] == sorted(some)
