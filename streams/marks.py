"""How stale what is visible may be at most, told from looks at how far the topics have got.

Nobody can see when an event was accepted that is in no snapshot yet: of `understood` it is known how far it was
applied, and nothing of what lies beyond. So each look leaves a mark: when it was, and where `documents` ended then. All
that was accepted before is in `understood` once what understands has passed these ends, so before the ends that
`understood` has then; and it is visible once what applies has passed those. Only one clock is read, and only for the
time between looks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

MOST: Final = 1000
"""Marks that are kept of each kind; with more of them every second one is forgotten, which only overestimates."""


class Look(NamedTuple):
    """What one look found. The offsets are those of next records, by partition."""

    at: float
    """Seconds, before the ends were asked for."""
    understood: Sequence[int]
    """How far `documents` was understood; asked for before the ends, as `applied` is."""
    applied: Sequence[int]
    """How far `understood` was applied."""
    documents_end: Sequence[int]
    understood_end: Sequence[int]


class _Mark(NamedTuple):
    at: float
    ends: Sequence[int]


class Marks:
    """What all looks so far tell. Fit for use by one thread at a time."""

    def __init__(self) -> None:
        self._accepted: list[_Mark] = []
        """Ends of `documents`, as long as not all before them is understood."""
        self._published: list[_Mark] = []
        """Ends of `understood` before which all lies that was accepted before their moment."""
        self._applied: Sequence[int] = ()

    def learn(self, look: Look) -> None:
        """Take the next look into account."""
        _add(self._accepted, _Mark(look.at, look.documents_end))
        passed: _Mark | None = None
        # The ends only grow, so those that were passed stand first.
        while self._accepted and _has_passed(look.understood, self._accepted[0].ends):
            passed = self._accepted.pop(0)
        if passed is not None:
            _add(self._published, _Mark(passed.at, look.understood_end))
        self._applied = look.applied

    def reflected(self, partition: int, offset: int = 0, *, is_newest: bool = False) -> float | None:
        """A moment before which all that was accepted, and comes by this partition of `understood`, is in a snapshot
        that reflects what is before `offset`; `is_newest`: one that nothing was committed after.

        None where the looks do not reach back far enough.
        """
        if is_newest and self._applied:
            offset = max(offset, self._applied[partition])
        found = bisect_right(self._published, offset, key=lambda mark: mark.ends[partition])
        return self._published[found - 1].at if found else None

    def everywhere(self) -> float | None:
        """The earliest of these moments of the newest snapshots of all namespaces."""
        found = [self.reflected(partition, is_newest=True) for partition in range(len(self._applied))]
        return None if not found or None in found else min(moment for moment in found if moment is not None)


def _add(marks: list[_Mark], new: _Mark) -> None:
    if marks and marks[-1].ends == new.ends:
        # Nothing came in between, so what is before these ends is all that was accepted up to now.
        marks[-1] = new
    else:
        marks.append(new)
    if len(marks) > MOST:
        del marks[1:-1:2]


def _has_passed(reached: Sequence[int], ends: Sequence[int]) -> bool:
    return all(offset >= end for offset, end in zip(reached, ends, strict=True))
