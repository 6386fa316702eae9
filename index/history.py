"""Which snapshot was the newest at a moment, and what lies between two."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from .errors import BadRequest, NotFound, SnapshotGone, StoreError
from .graph.segment import Segment, read_segment, total
from .manifest import Manifest, Manifests, now

When = int | datetime
"""The number of a snapshot, or a moment (aware), which means the newest snapshot committed at or before it."""

_ATTEMPTS = 5


def parse_when(written: str) -> When:
    """A number of digits, or a moment as `parse_moment` takes it. Raises BadRequest for anything else."""
    if re.fullmatch(r"[0-9]{1,18}", written, re.ASCII):
        return int(written)
    try:
        return parse_moment(written)
    except ValueError:
        shown = repr(written[:40])
        hint = "give the number of a snapshot, or a moment like 2026-04-01T12:00:00Z"
        raise BadRequest(f"{shown} names no snapshot", hint=hint) from None


def parse_moment(written: str) -> datetime:
    """A moment in ISO 8601, in UTC; without a zone it is UTC, a date alone is its first moment. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(written)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("a moment is written in ISO 8601, like 2026-04-01T12:00:00Z") from None


def find(manifests: Manifests, when: When) -> Manifest:
    """The manifest of the snapshot that `when` names.

    Raises SnapshotGone (naming the nearest that stand) for one that was cleaned away or is older than the first that
    stands, NotFound for one that never was: a number or moment to come, or before the first snapshot of all.
    """
    if isinstance(when, int):
        return manifests.read(when)
    if when > now():
        hint = "the present is still changing: leave the moment out to ask the newest snapshot"
        raise NotFound(f"{_shown(when)} is still to come", hint=hint)
    for _ in range(_ATTEMPTS):
        numbers = manifests.numbers()
        try:
            # Commit times ascend with the numbers as far as the clock does; a dozen manifests are read, not all.
            at = bisect_right(numbers, when, key=lambda number: manifests.read(number).time)
            if at:
                return manifests.read(numbers[at - 1])
            first = manifests.read(min(numbers, default=1))
        except SnapshotGone:
            # Cleaned away since it was listed.
            continue
        hint = f"the oldest that can be read is {first.number}, of {_shown(first.time)}"
        if first.number == 1:
            raise NotFound(f"there was no snapshot at {_shown(when)}", hint=hint)
        raise SnapshotGone(f"the snapshot of {_shown(when)} is beyond the retention", hint=hint)
    raise SnapshotGone(f"the snapshots around {_shown(when)} are being cleaned away", hint="ask for a later moment")


def between(folder: Path, before: Manifest, after: Manifest) -> Segment:
    """What `after` has more than `before`, of one namespace folder; either may be the newer one.

    The index is a sum, so segments that both name cancel unread: the cost is that of the others.
    """
    ours, theirs = set(after.segments), set(before.segments)
    come = [read_segment(folder / "segments", file) for file in after.segments if file not in theirs]
    gone = [-read_segment(folder / "segments", file) for file in before.segments if file not in ours]
    return total([*come, *gone])


@contextmanager
def standing(folder: Path, *numbers: int) -> Iterator[None]:
    """What cannot be read inside because one of these snapshots was cleaned away: raises SnapshotGone.

    Manifests go before the files that they name, so a file that is missing has no manifest any more.
    """
    try:
        yield
    except (StoreError, OSError, RuntimeError, ValueError, KeyError) as error:
        manifests = Manifests(folder / "manifests")
        for number in numbers:
            if not manifests.exists(number):
                raise manifests.gone(number) from error
        raise


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S.%f} UTC"
