"""Keeping commits and reads cheap: merge segments, compact tables, and clean up what no retained snapshot needs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

from .graph.segment import SegmentFile, total, write_segment
from .manifest import now
from .records import TABLES
from .writer import Writer

_SEGMENT = re.compile(r"(\d{20})-")

FAN = 8
"""So many segments of one size class are merged into one of the next: every entry is copied about log8(N) times."""
SMALLEST = 4096
"""Segments of fewer entries are one size class."""
COMPACT_AFTER = 64
"""Commits between two compactions; commits and reads slow down with the number of a table's fragments."""
COMPACT_AFTER_PASSAGES = 2_000
"""Passages between two compactions: rows that are not in the key index yet are found by looking at all of them."""
FRAGMENT_CLASSES = (1_000, 8_000, 64_000)
"""Rows from which a fragment belongs to the next size class; the largest are left alone."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long snapshots stay readable: all of them for `every`, then the last of each minute until `reach`; the newest
    always.
    """

    reach: timedelta = timedelta(hours=24)
    every: timedelta = timedelta(minutes=1)

    def keeps(self, times: Sequence[datetime], moment: datetime) -> list[bool]:
        """Which of the snapshots committed at `times` (ascending) are kept at `moment`."""
        minutes = [time.replace(second=0, microsecond=0) for time in times]
        last_of_minute = (
            [minute != later for minute, later in zip(minutes, [*minutes[1:], None], strict=True)] if minutes else []
        )
        return [
            index == len(times) - 1 or moment - time <= self.every or (moment - time <= self.reach and last)
            for index, (time, last) in enumerate(zip(times, last_of_minute, strict=True))
        ]


def merge(writer: Writer, fan: int = FAN) -> bool:
    """Merge the segments of every size class that is full; True if a manifest was committed.

    Readers of older snapshots notice nothing.
    """
    files = writer.manifest.segments
    full = _full_class(files, fan)
    if not full:
        return False
    merged = total(writer.segments[file.name] for file in full)
    name = f"{writer.manifest.number + 1:020d}-{writer.manifest.epoch}-{uuid4().hex}-sum.arrow"
    file = write_segment(writer.folder / "segments", name, merged)
    writer.replace_segments({name: merged}, segments=(file, *(old for old in files if old not in full)))
    return True


def uncompacted(writer: Writer) -> int:
    """About how many commits there were since the last compaction: each leaves a small fragment in `documents`."""
    fragments = writer.tables.dataset("documents").get_fragments()
    return sum(fragment.metadata.physical_rows < FRAGMENT_CLASSES[0] for fragment in fragments)


def compact(writer: Writer) -> None:
    """Rewrite small fragments and bring the key indexes up to date; committed as a snapshot of the same content.

    Fragments are merged by size class, as segments are, so a row is rewritten about log8(N) times and not at every
    compaction.
    """
    for name in TABLES:
        dataset = writer.tables.dataset(name)
        if not (rows := dataset.count_rows()):
            continue
        sizes = [fragment.metadata.physical_rows for fragment in dataset.get_fragments()]
        dataset.optimize.compact_files(target_rows_per_fragment=_fragment_target(sizes))
        indexed = any(index.name == "key_idx" for index in dataset.describe_indices())
        if indexed:
            dataset.optimize.optimize_indices(num_indices_to_merge=FAN)
        else:
            dataset.create_scalar_index("key", index_type="BTREE", name="key_idx")
        writer.tables.adopt(name, dataset, rows)
    writer.replace_segments({})


def clean(writer: Writer, retention: Retention, moment: datetime | None = None, least: int = 1) -> int:
    """Remove snapshots beyond the retention, and then every file and table version that no snapshot left names.

    Only by explicit list, never by age: a quiet table's version may be old and still needed. Returns how many
    snapshots went; none where there are fewer than `least`.
    """
    history = writer.history()
    keeps = retention.keeps([held.time for held in history.values()], moment or now())
    gone = [number for number, keep in zip(history, keeps, strict=True) if not keep]
    if len(gone) < max(1, least):
        return 0
    # First the manifests: a reader that still finds one must find its files as well.
    for number in gone:
        writer.manifests.remove(number)
    left = list(writer.history().values())
    _clean_segments(writer.folder / "segments", {name for held in left for name in held.files}, writer.manifest.number)
    for name in TABLES:
        named = {held.tables[name] for held in left}
        unnamed = [
            v for v in writer.tables.versions_on_disk(name) if v not in named and v < writer.tables.versions[name]
        ]
        if unnamed:
            writer.tables.dataset(name).cleanup_old_versions(versions=unnamed, error_if_tagged_old_versions=False)
    return len(gone)


def _fragment_target(sizes: Sequence[int]) -> int:
    """Rows below which fragments are merged: the bound of the smallest class, or of a larger one that is full."""
    bounds = zip((0, *FRAGMENT_CLASSES), FRAGMENT_CLASSES, strict=False)
    full = [upper for lower, upper in bounds if sum(lower <= size < upper for size in sizes) >= FAN]
    return max([FRAGMENT_CLASSES[0], *full])


def _full_class(files: Sequence[SegmentFile], fan: int) -> list[SegmentFile]:
    """The segments of the largest full size class and of all smaller ones; none where no class is full."""
    classes = [_size_class(file) for file in files]
    full = [c for c in set(classes) if classes.count(c) >= fan]
    return [file for file, c in zip(files, classes, strict=True) if full and c <= max(full)]


def _size_class(file: SegmentFile) -> int:
    return max(0, math.ceil(math.log(file.entries / SMALLEST, FAN))) if file.entries else 0


def _clean_segments(folder: Path, named: Collection[str], newest: int) -> None:
    for name in os.listdir(folder):
        # A younger number may belong to a commit that is under way.
        if (match := _SEGMENT.match(name)) and name not in named and int(match[1]) <= newest:
            (folder / name).unlink()
