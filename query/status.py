"""What is there: the sizes of every namespace and the snapshots of one, from manifests alone."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from index.clock import from_microseconds
from index.errors import NotFound, SnapshotGone
from index.home import Home
from index.manifest import Manifest, Manifests

from .schema import Sizes, SnapshotEntry


def newest(home: Home, name: str) -> Manifest:
    """The newest manifest of a namespace. Raises NotFound."""
    return Manifests(home.incarnation(name) / "manifests").newest()


def sizes(home: Home) -> dict[str, Sizes]:
    """Sizes of every namespace by name, as of its newest snapshot."""
    found = {}
    for name in home.names():
        # One that is deleted between the two looks is simply not there.
        with suppress(NotFound, SnapshotGone, FileNotFoundError):
            manifest = newest(home, name)
            found[name] = Sizes(**manifest.counts.model_dump(), snapshot=manifest.number)
    return found


def snapshots(home: Home, name: str, limit: int) -> list[SnapshotEntry]:
    """The newest `limit` snapshots of a namespace that can still be read, newest first. Raises NotFound."""
    manifests = Manifests(home.incarnation(name) / "manifests")
    found = []
    for number in reversed(manifests.numbers()[-limit:]):
        with suppress(NotFound, SnapshotGone):
            found.append(_entry(manifests.read(number)))
    return found


def moment(stamp: int) -> datetime | None:
    """A watermark as a time; None before the first event."""
    return from_microseconds(stamp) if stamp else None


def _entry(manifest: Manifest) -> SnapshotEntry:
    return SnapshotEntry(
        **manifest.counts.model_dump(),
        snapshot=manifest.number,
        time=manifest.time,
        cause=manifest.cause,
        epoch=manifest.epoch,
        positions=manifest.positions,
        watermark=moment(manifest.watermark),
    )
