"""The pieces that a table consists of: every addition makes a small one, and small ones are merged by size class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FAN = 8
"""So many pieces of one size class are merged into one of the next: every row is copied about log8(N) times."""
CLASSES = (1_000, 8_000, 64_000)
"""Rows from which a fragment belongs to the next size class; the largest are left alone."""


def small(dataset: Any) -> int:
    """About how many additions there were since the last compaction."""
    return sum(rows < CLASSES[0] for rows in _sizes(dataset))


def compact(dataset: Any) -> None:
    """Rewrite small fragments, in place: `dataset` is the newest version then."""
    dataset.optimize.compact_files(target_rows_per_fragment=_target(_sizes(dataset)))


def _sizes(dataset: Any) -> list[int]:
    return [fragment.metadata.physical_rows for fragment in dataset.get_fragments()]


def _target(sizes: Sequence[int]) -> int:
    """Rows below which fragments are merged: the bound of the smallest class, or of a larger one that is full."""
    bounds = zip((0, *CLASSES), CLASSES, strict=False)
    full = [upper for lower, upper in bounds if sum(lower <= size < upper for size in sizes) >= FAN]
    return max([CLASSES[0], *full])
