"""Tests of segments: the algebra over all relations, and files that are whole or refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import Torn
from index.graph.incidence import Incidence
from index.graph.segment import Relation, Segment, read_segment, total, write_segment
from index.keys import key

from .naive import Entries, entries

KEYS = [key("row", str(number)) for number in range(5)]
items = st.lists(
    st.tuples(st.sampled_from(Relation), st.sampled_from(KEYS), st.sampled_from(KEYS), st.integers(-3, 3)), max_size=12
)
Items = list[tuple[Relation, bytes, bytes, int]]


def made(listed: Items) -> Segment:
    relations = {}
    for relation in {relation for relation, *_ in listed}:
        chosen = [item for item in listed if item[0] is relation]
        cols = [col for _, _, col, _ in chosen]
        texts = [col.hex() for col in cols] if relation is Relation.SPELLINGS else None
        relations[relation] = Incidence.of([row for _, row, _, _ in chosen], cols, [item[3] for item in chosen], texts)
    return Segment(relations)


def content(segment: Segment) -> dict[Relation, Entries]:
    return {relation: entries(segment[relation]) for relation in Relation}


@given(st.lists(items, max_size=5), st.randoms())
def test_a_total_does_not_depend_on_the_order(lists: list[Items], chance: random.Random) -> None:
    segments = [made(listed) for listed in lists]
    whole = made([item for listed in lists for item in listed])
    assert content(total(segments)) == content(whole)
    chance.shuffle(segments)
    assert content(total(segments)) == content(whole)
    assert total([*segments, -total(segments)]).entries == 0


def test_the_sum_of_nothing_is_empty() -> None:
    assert total([]).entries == 0 == Segment({}).entries


@given(items)
def test_a_file_gives_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, listed: Items) -> None:
    folder, segment = tmp_path_factory.mktemp("segments"), made(listed)
    file = write_segment(folder, "one.arrow", segment)
    read = read_segment(folder, file)
    assert content(read) == content(segment)
    assert (file.size, file.entries) == ((folder / file.name).stat().st_size, segment.entries)
    spellings = read[Relation.SPELLINGS]
    assert spellings.text.to_pylist() == [col.hex() for col in spellings.cols()]


@pytest.mark.parametrize("damage", ["cut", "empty", "longer", "flipped", "missing"])
def test_a_damaged_file_is_torn_and_named(tmp_path: Path, damage: str) -> None:
    file = write_segment(tmp_path, "one.arrow", made([(Relation.TERMS, KEYS[0], KEYS[1], 2)]))
    path = tmp_path / file.name
    data = path.read_bytes()
    middle = len(data) // 2
    damaged = {
        "cut": data[:middle],
        "empty": b"",
        "longer": data + b"\0",
        "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
    }
    path.unlink()
    if damage in damaged:
        path.write_bytes(damaged[damage])
    with pytest.raises(Torn, match=r"one\.arrow"):
        read_segment(tmp_path, file)


def test_a_segment_is_never_overwritten(tmp_path: Path) -> None:
    file = write_segment(tmp_path, "one.arrow", made([(Relation.TERMS, KEYS[0], KEYS[1], 2)]))
    with pytest.raises(FileExistsError):
        write_segment(tmp_path, "one.arrow", Segment({}))
    assert read_segment(tmp_path, file).entries == 1


def test_a_segment_outlives_its_file(tmp_path: Path) -> None:
    """Cleaning unlinks files that a reader may still have mapped."""
    file = write_segment(tmp_path, "one.arrow", made([(Relation.TERMS, KEYS[0], KEYS[1], 2)]))
    held = read_segment(tmp_path, file)
    (tmp_path / file.name).unlink()
    assert entries(held[Relation.TERMS]) == {(KEYS[0], KEYS[1]): 2}
