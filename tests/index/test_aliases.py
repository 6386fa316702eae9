"""Tests of alias edges: the incremental set against all pairs of the living, whatever was born and died."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from index import aliases
from index.aliases import SCALE, Aliases, difference
from index.keys import entity_key
from index.models.base import unit_rows
from index.types import Entity, Key

NORMS = (
    *("ada moor", "ada m", "a moor", "pier 9", "pier 12", "pier nine 9", "bo"),
    *("b o", "b o x", "osprey", "ospreys", "42", "421"),
)
D = 3


def entity(norm: str) -> Entity:
    return Entity(entity_key(norm), norm, norm.title())


def vector(norm: str, turn: int) -> NDArray[np.float32]:
    """A direction from few, so that many pairs are near and some exactly at the threshold."""
    angle = (len(norm) + turn) % 4 * np.arccos(0.8) / 2
    return unit_rows(np.array([[np.cos(angle), np.sin(angle), 0.0]])).reshape(D)


def all_pairs(
    living: dict[str, NDArray[np.float32]], threshold: float, same_digits: bool
) -> dict[tuple[Key, Key], int]:
    edges = {}
    for (one, u), (other, v) in product(living.items(), repeat=2):
        similarity = round(float(u.astype(float) @ v.astype(float)) * SCALE)
        long = all(sum(map(str.isalnum, norm)) > 2 for norm in (one, other))
        digits = re.findall(r"\d+", one) == re.findall(r"\d+", other)
        if one != other and similarity >= round(threshold * SCALE) and long and (digits or not same_digits):
            edges[entity_key(one), entity_key(other)] = similarity
    return edges


steps = st.lists(st.tuples(st.sampled_from(NORMS), st.integers(0, 3), st.booleans()), max_size=40)


@given(steps, st.sampled_from([0.5, 0.8, 0.95]), st.booleans())
def test_the_edges_are_those_of_all_pairs(
    history: list[tuple[str, int, bool]], threshold: float, same_digits: bool
) -> None:
    known = Aliases(D, threshold, same_digits)
    living: dict[str, NDArray[np.float32]] = {}
    edges: dict[tuple[Key, Key], int] = {}
    for norm, turn, dies in history:
        known.kill([entity_key(norm)])
        living.pop(norm, None)
        edges = {pair: weight for pair, weight in edges.items() if entity_key(norm) not in pair}
        if not dies:
            living[norm] = vector(norm, turn)
            known.bear([entity(norm)], living[norm][None, :])
            edges |= known.edges([entity_key(norm)])
        assert edges == all_pairs(living, threshold, same_digits)
    assert known.edges(map(entity_key, living)) == edges


def test_the_examples_reach_every_rule() -> None:
    """The vectors above give edges at the threshold, below it, and pairs that only the digits keep apart."""
    living = {norm: vector(norm, 0) for norm in NORMS}
    strict, loose, low = all_pairs(living, 0.8, True), all_pairs(living, 0.8, False), all_pairs(living, 0.5, True)
    assert 8_000 in strict.values() and strict.keys() < loose.keys() and strict.keys() < low.keys()
    assert not any(entity_key(short) in pair for short in ("bo", "b o", "42") for pair in loose)


def test_more_living_than_one_block_and_one_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aliases, "_BLOCK", 7)
    many = [entity(f"name {'x' * number}") for number in range(1, 1_200)]
    vectors = unit_rows(np.random.default_rng(1).normal(size=(len(many), 8)))
    known = Aliases(8, 0.9, True)
    known.bear(many, vectors)
    dead = many[::3]
    known.kill(entity.key for entity in dead)
    left = [index for index in range(len(many)) if index % 3]
    wide = vectors[left].astype(np.float64)
    near = np.rint(wide @ wide.T * SCALE)
    np.fill_diagonal(near, 0)
    pairs = np.argwhere(near >= 9_000).tolist()
    expected = {(many[left[i]].key, many[left[j]].key): int(near[i, j]) for i, j in pairs}
    assert len(expected) > 100
    assert known.edges(entity.key for entity in many) == expected


def test_a_difference_leaves_out_what_stays() -> None:
    a, b, c = (bytes([number]) * 16 for number in range(3))
    assert difference({(a, b): 5, (b, c): 7}, {(a, b): 5, (b, c): 9, (a, c): 1}) == {(b, c): 2, (a, c): 1}
    assert difference({(a, b): 5}, {}) == {(a, b): -5}
