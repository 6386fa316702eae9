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

from . import fragments
from .fragments import FAN
from .graph.segment import SegmentFile, total, write_segment
from .indexes import SEARCHED, Upkeep, keep_keys, keep_nearest, keep_words
from .limits import EXACT_MAX
from .manifest import now
from .records import TABLES
from .writer import Writer

_SEGMENT = re.compile(r"(\d{20})-")

SMALLEST = 4096
"""Segments of fewer entries are one size class."""
COMPACT_AFTER = 64
"""Commits between two compactions; commits and reads slow down with the number of a table's fragments."""
COMPACT_AFTER_PASSAGES = 2_000
"""Passages between two compactions: rows that are not in the key index yet are found by looking at all of them."""


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
    return fragments.small(writer.tables.dataset("documents"))


def compact(writer: Writer) -> None:
    """Rewrite small fragments and bring the key indexes up to date; committed as a snapshot of the same content.

    Fragments are merged by size class, as segments are, so a row is rewritten about log8(N) times and not at every
    compaction.
    """
    for name in TABLES:
        dataset = writer.tables.dataset(name)
        if not (rows := dataset.count_rows()):
            continue
        fragments.compact(dataset)
        keep_keys(dataset)
        writer.tables.adopt(name, dataset, rows)
    writer.replace_segments({})


def index(writer: Writer, exact_max: int = EXACT_MAX) -> dict[str, Upkeep]:
    """Keep the indexes that questions use: of vectors in tables of more than `exact_max` rows, and of words.

    Committed as a snapshot of the same content where anything was done; returns what, by index. Training takes about 5
    processor seconds for 100,000 rows, and whoever calls this commits nothing meanwhile; it happens when a table first
    has more than `exact_max` rows and each time it has grown fourfold.
    """
    done: dict[str, Upkeep] = {}
    for name in SEARCHED:
        dataset = writer.tables.dataset(name)
        if not (rows := dataset.count_rows()):
            continue
        done[f"{name} vectors"] = keep_nearest(dataset, rows, exact_max)
        if name == "passages":
            done[f"{name} words"] = keep_words(dataset, rows)
        if dataset.version != writer.tables.versions[name]:
            writer.tables.adopt(name, dataset, rows)
    if writer.tables.versions != writer.manifest.tables:
        writer.replace_segments({})
    return done


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
