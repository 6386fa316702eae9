"""Kept values are found by their key, whatever other writers, crashes and compactions do to their places."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index import kept
from index.kept import Kept
from index.tables import version_files
from index.types import Key

KEYS = [bytes([number]) * 16 for number in range(20)]


def opened(folder: Path) -> Kept:
    return Kept(folder, "things", "extraction", pa.large_string())


def add(into: Kept, keys: list[Key]) -> None:
    into.add(keys, pa.array([key.hex() for key in keys], pa.large_string()))


steps = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["add", "find", "compact", "reopen"]),
        st.lists(st.sampled_from(KEYS), max_size=6, unique=True),
    ),
    max_size=12,
)


@settings(max_examples=15)
@given(steps)
def test_what_is_found_is_what_was_added(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[int, str, list[Key]]]
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    writers = [opened(folder), opened(folder)]
    everything: set[Key] = set()
    own: list[set[Key]] = [set(), set()]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kept, "FOLD_AFTER", 3)
        for who, what, keys in history:
            if what == "add":
                add(writers[who], keys)
                own[who] |= set(keys)
                everything |= set(keys)
            elif what == "compact":
                writers[who].compact()
            elif what == "reopen":
                writers[who] = opened(folder)
                own[who] = set(everything)
            else:
                found = writers[who].find([*keys, *keys])
                assert own[who] & set(keys) <= found.keys() <= everything & set(keys)
                assert found == {key: key.hex() for key in found}
    for writer in (opened(folder), opened(folder)):
        assert writer.find(KEYS).keys() == everything


def test_vectors_come_as_rows(tmp_path: Path) -> None:
    vectors = Kept(tmp_path, "vectors", "vector", pa.list_(pa.float32(), 2))
    vectors.add(KEYS[:2], pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4], pa.float32()), 2))
    found = vectors.find([KEYS[1], KEYS[5], KEYS[0]])
    assert found.keys() == set(KEYS[:2])
    assert np.array_equal(found[KEYS[1]], [3, 4]) and np.array_equal(found[KEYS[0]], [1, 2])


def test_keys_that_begin_alike_are_never_taken_for_one_another(tmp_path: Path) -> None:
    alike = [bytes(8) + bytes([number]) * 8 for number in range(3)]
    things = opened(tmp_path)
    add(things, alike)
    for found in (things.find(alike), opened(tmp_path).find(alike)):
        assert found and found == {key: key.hex() for key in found}


def test_what_nobody_has_is_not_looked_for_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    things = opened(tmp_path)
    add(things, KEYS[:3])

    def read(*_: object) -> None:
        raise AssertionError("the table was read")

    assert things.find(KEYS[:3]).keys() == set(KEYS[:3])
    monkeypatch.setattr(lance.LanceDataset, "_take_rows", read)
    monkeypatch.setattr(lance.LanceDataset, "scanner", read)
    assert things.find(KEYS[3:6]) == {}


@pytest.mark.parametrize("fold_after", [1, 100])
def test_only_what_is_new_is_read_of_the_keys(tmp_path: Path, fold_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FOLD_AFTER", fold_after)
    mine, theirs = opened(tmp_path), opened(tmp_path)
    pieces: list[int] = []
    scanner = lance.LanceDataset.scanner

    def noting(dataset: lance.LanceDataset, *, fragments: list[Any], **named: Any) -> Any:
        pieces.append(len(fragments))
        return scanner(dataset, fragments=fragments, **named)

    monkeypatch.setattr(lance.LanceDataset, "scanner", noting)
    for number in range(0, 6, 2):
        add(theirs, KEYS[number : number + 2])
        assert mine.find(KEYS[: number + 3]).keys() == set(KEYS[: number + 2])
    assert pieces == [1, 1, 1]
    theirs.compact()
    assert mine.find(KEYS[:7]).keys() == set(KEYS[:6]) and pieces[3:] == [1]
    assert len(mine._heads) + len(mine._recent) == 6, "what was compacted is known in its new place only"


def test_one_that_holds_a_removed_version_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "SUPERSEDED_SECONDS", -1.0)
    monkeypatch.setattr(kept, "COMPACT_AFTER", 4)
    mine, theirs = opened(tmp_path), opened(tmp_path)
    for key in KEYS[:5]:
        add(mine, [key])
    assert mine.find(KEYS[:5]).keys() == set(KEYS[:5]) and mine.due
    theirs.compact()
    assert len(version_files(tmp_path, "things")) == 1
    assert mine.find(KEYS[:5]) == {key: key.hex() for key in KEYS[:5]}, "nothing is missing, and no file is there"
    add(mine, KEYS[5:6])
    assert not mine.due, "of six pieces two are left"
    theirs.compact()
    for things in (mine, theirs, opened(tmp_path)):
        assert things.find(KEYS[:6]).keys() == set(KEYS[:6])


def test_a_version_is_kept_as_long_as_one_may_look_at_it(tmp_path: Path) -> None:
    things = opened(tmp_path)
    for key in KEYS[:5]:
        add(things, [key])
    before = version_files(tmp_path, "things")
    for version, path in before.items():
        # All are old; the newest of these was the newest until now.
        os.utime(path, (time.time() - 3600 + version,) * 2)
    things.compact()
    assert set(before) & version_files(tmp_path, "things").keys() == {max(before)}
