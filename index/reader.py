"""A reader: one namespace's newest snapshot, kept new."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Lock

from .errors import NotFound, NotYet, StoreError
from .graph.segment import Segment, read_segment, total
from .history import between, standing
from .limits import EXACT_MAX
from .manifest import Manifest, Manifests
from .memory import give_back
from .renewal import Renewal
from .snapshot import PLAIN_WEIGHTS, EdgeWeights, Snapshot, advance, empty, step


class Reader:
    """Holds the newest snapshot of a namespace folder.

    Any number of threads may use it; they never wait for each other's questions. Vectors of a table of more than
    `exact_max` rows stay on disk once they are indexed.
    """

    def __init__(self, folder: Path, weights: EdgeWeights = PLAIN_WEIGHTS, *, exact_max: int = EXACT_MAX) -> None:
        self.folder = folder
        self.manifests = Manifests(folder / "manifests")
        self._weights = weights
        self._exact_max = exact_max
        self._lock = Lock()
        self._listed = -1
        self._renewal = Renewal(self._load)
        self._snapshot: Snapshot = self._load(self.manifests.newest())

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot held now; it stays readable for as long as it is held."""
        return self._snapshot

    def refresh(self) -> Snapshot:
        """Swap to the newest manifest, if there is one, and return the snapshot held then."""
        with self._lock:
            newest = self._newest()
            # What was made anew is adopted between two steps, or in a quiet moment, and may have to catch up.
            held = self._renewal.adopt(self._snapshot)
            if newest > held.manifest.number:
                held = self._follow(held, newest)
            self._snapshot = held
            self._renewal.begin(held)
            return held

    def wait_for(self, source: str, position: int, timeout: float) -> Snapshot:
        """The first snapshot that reflects the event at `position`; raises NotYet after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        pause = 0.002
        while (snapshot := self.refresh()).manifest.positions.get(source, -1) < position:
            if time.monotonic() > deadline:
                seen = snapshot.manifest.positions.get(source, "no event of it")
                hint = "ask again; if the position does not move, look at the ingest side (`gistream status`)"
                raise NotYet(
                    f"event {position} is not visible after {timeout:g} s; "
                    f"snapshot {snapshot.manifest.number} is at {seen}",
                    hint=hint,
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return snapshot

    def older(self, manifest: Manifest) -> Snapshot:
        """The snapshot of a manifest of this folder, reached from the one held by going back.

        Both share vectors and numbers, so it costs the segments and rows that are not in both, and copying some 40
        bytes for every number ever given. Raises SnapshotGone where it is cleaned away meanwhile.
        """
        with standing(self.folder, manifest.number):
            held = self._snapshot if manifest.number <= self._snapshot.manifest.number else self.refresh()
            if held.manifest == manifest:
                return held
            try:
                delta = between(self.folder, held.manifest, manifest)
                # Whoever follows the commits waits for as little as possible.
                read = step(held, manifest, delta)
                with self._lock:
                    return advance(held, manifest, delta, read)
            except StoreError:
                # The files of the one held may be gone themselves.
                return self._load(manifest)

    def _newest(self) -> int:
        """Number of the newest manifest.

        Numbers have gaps where snapshots were torn or cleaned away, at any place, so a folder that changed is listed.
        Its time is coarse: a snapshot that came within the same tick is found by its number.
        """
        changed = self.manifests.folder.stat().st_mtime_ns
        number = self._snapshot.manifest.number
        if changed != self._listed:
            number = max([number, *self.manifests.numbers()])
            self._listed = changed
        while self.manifests.exists(number + 1):
            number += 1
        return number

    def _follow(self, held: Snapshot, newest: int) -> Snapshot:
        """Add the deltas of every manifest up to `newest`; where one is gone already, load afresh."""
        deltas: list[Segment] = []
        try:
            manifest = held.manifest
            for number in range(held.manifest.number + 1, newest + 1):
                after = self.manifests.read(number)
                if after.parent != manifest.checksum:
                    return self._load(self.manifests.read(newest))
                manifest = after
                if manifest.delta is not None:
                    deltas.append(read_segment(self.folder / "segments", manifest.delta))
        except (StoreError, NotFound):
            return self._load(self.manifests.read(newest))
        return advance(held, manifest, total(deltas))

    def _load(self, manifest: Manifest) -> Snapshot:
        manifest.require_format(self.folder)
        segments = (read_segment(self.folder / "segments", file) for file in manifest.segments)
        try:
            return advance(empty(self.folder, manifest, self._weights, self._exact_max), manifest, total(segments))
        finally:
            give_back()
