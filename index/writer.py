"""The writer: the only way to change a namespace, one whole batch at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import uuid4

from . import records
from .aliases import Aliases
from .errors import GistreamError, StoreError, TablesMoved, Torn, WriterFenced
from .graph.segment import Segment, write_segment
from .lock import WriterLock
from .manifest import Fingerprint, Held, Manifest, Manifests, now
from .plan import Changes, Embed, Plan, plan
from .recovery import newest_holding, open_tables, sync_since
from .tables import Tables, VersionGap
from .titles import Titles
from .types import Document, Key, Passage

ATTEMPTS = 3
_POOL = ThreadPoolExecutor(len(records.TABLES), "gistream-tables")
"""Writes the tables of one batch side by side; shared by all writers of the process."""


class Synced(NamedTuple):
    """Up to which manifest the files of a namespace are on the disk, and since when (seconds since 1970)."""

    number: int
    moment: float


class Writer:
    """Writes one namespace. Opening it fences every former writer; whoever loses a commit must stop.

    One thread uses a writer. After WriterFenced or TablesMoved it is of no further use.
    """

    def __init__(
        self,
        folder: Path,
        lock: WriterLock,
        manifest: Manifest,
        tables: Tables,
        segments: Mapping[str, Segment],
        embed: Embed,
    ) -> None:
        self.folder = folder
        self.manifests = Manifests(folder / "manifests")
        self.manifest = manifest
        self.tables = tables
        self.segments = dict(segments)
        """Every segment of the newest manifest by name; their sum is the state."""
        self._lock = lock
        self._embed = embed
        self._aliases: Aliases | None = None
        self._titles: Titles | None = None
        self.synced = Synced(0, 0.0)
        self._history: dict[int, Held] = {}

    @classmethod
    def create(
        cls, folder: Path, fingerprint: Fingerprint, embed: Embed, *, positions: Mapping[str, int] | None = None
    ) -> Self:
        """Make an empty namespace in a folder that has none, and open it."""
        manifests = Manifests(folder / "manifests")
        manifests.create()
        (folder / "segments").mkdir(exist_ok=True)
        lock = WriterLock(folder / "writer.lock")
        lock.acquire(take_over=False)
        tables = Tables(folder / "tables", fingerprint)
        tables.create()
        manifest = Manifest(
            number=manifests.next_number(), epoch=1, cause="open", time=now(), parent="", fingerprint=fingerprint,
            tables=dict(tables.versions), segments=(), delta=None, positions=positions or {},
        ).sealed()  # fmt: skip
        if manifest.number != 1 or not manifests.commit(manifest):
            lock.release()
            raise WriterFenced(f"{folder} already holds an index", hint="open it instead of creating it")
        return cls(folder, lock, manifest, tables, {}, embed)

    @classmethod
    def open(
        cls,
        folder: Path,
        fingerprint: Fingerprint,
        embed: Embed,
        *,
        take_over: bool = False,
        synced: Synced | None = None,
    ) -> Self:
        """Recover the newest state that holds, then commit a manifest with a new epoch before anything else.

        `synced` is what a former writer of this process left on the disk; where nobody has written since, neither this
        nor the first checkpoint looks at those files again. Raises WriterBusy where a process on this machine holds the
        lock (unless `take_over`), WriterFenced where another one opens or writes it meanwhile, WrongFingerprint where
        the index was made otherwise, Torn where no manifest holds.
        """
        lock = WriterLock(folder / "writer.lock")
        lock.acquire(take_over=take_over)
        try:
            manifests = Manifests(folder / "manifests")
            # Before anything is read: what others commit from here on takes the number, and nothing of it is undone.
            number = manifests.next_number()
            newest, segments = newest_holding(folder, manifests, durable=None if synced is None else synced.number)
            newest.require(fingerprint, folder)
            writer = cls(folder, lock, newest, open_tables(folder, newest), segments, embed)
            if synced is not None and synced.number == newest.number:
                writer.synced = synced
            writer._commit(cause="open", number=number, epoch=newest.epoch + 1, delta=None)
        except BaseException:
            lock.release()
            raise
        return writer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Checkpoint and let go of the lock."""
        try:
            self.checkpoint()
        finally:
            self.release()

    def release(self) -> None:
        """Let go of the lock and nothing more: what is not durable yet is still in the log."""
        self._lock.release()

    def hold(self) -> None:
        """Take the lock that was passed by when it was held, if it is free by now.

        Raises WriterBusy where somebody holds it who must not be passed by.
        """
        self._lock.acquire(take_over=True)

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Current rows of these documents, tombstones included; unknown ids are left out."""
        rows = self._settled_tables().read("documents", [records.document_key(id) for id in dict.fromkeys(ids)])
        return {row["id"]: records.document(row) for row in rows}

    def passages(self, keys: Sequence[Key]) -> dict[Key, Passage]:
        """Current rows of these passages, without their vectors."""
        columns = [name for name in self.tables.schemas["passages"].names if name != "vector"]
        return {row["key"]: records.passage(row) for row in self._settled_tables().read("passages", keys, columns)}

    def commit(self, changes: Changes, positions: Mapping[str, int], watermark: int) -> Manifest:
        """Apply a batch and make it visible, whole or not at all.

        `positions` are those of the log up to which events are now reflected, `watermark` the stamp of the newest
        of them. Raises WriterFenced when another writer took over, TablesMoved when a table would not hold still,
        and what the embedder raises; nothing of the batch is visible then.
        """
        batch = self._plan(changes)
        try:
            self._write(batch)
            delta = None
            if batch.segment.entries:
                # A commit that failed may have left a file, so no two attempts share a name.
                name = f"{self.manifest.number + 1:020d}-{self.manifest.epoch}-{uuid4().hex}.arrow"
                delta = write_segment(self.folder / "segments", name, batch.segment)
            times = [document.event_time for document in changes.documents if document.event_time is not None]
            self._commit(
                cause="batch",
                delta=delta,
                segments=self.manifest.segments if delta is None else (*self.manifest.segments, delta),
                positions={**self.manifest.positions, **positions},
                watermark=max(watermark, self.manifest.watermark),
                newest_event_time=max(
                    times + [time for time in [self.manifest.newest_event_time] if time is not None], default=None
                ),
                counts=batch.counts,
            )
        except BaseException as error:
            self._forget()
            if isinstance(error, Exception) and not isinstance(error, GistreamError):
                raise StoreError(f"a batch could not be written to {self.folder}: {error}") from error
            raise
        if delta is not None:
            self.segments[delta.name] = batch.segment
        return self.manifest

    def replace_segments(self, merged: Mapping[str, Segment], **change: Any) -> Manifest:
        """Commit the same state in other files: what maintenance made of tables and segments."""
        self._commit(cause="maintenance", delta=None, **change)
        self.segments = {
            file.name: merged.get(file.name) or self.segments[file.name] for file in self.manifest.segments
        }
        return self.manifest

    def history(self) -> dict[int, Held]:
        """What each snapshot that stands keeps, by number, ascending; every manifest is read once only."""
        known, self._history = self._history, {}
        for number in self.manifests.numbers():
            try:
                self._history[number] = known.get(number) or self.manifests.read(number).held
            except Torn:
                self.manifests.set_aside(number)
        return self._history

    def checkpoint(self) -> Mapping[str, int]:
        """Bring everything up to the newest manifest onto the disk; returns the positions that are durable now.

        LanceDB does not sync its files, so until then a power loss can take commits back, and the log must keep
        their events.
        """
        started = time.time()
        sync_since(self.folder, self.synced.moment)
        self.synced = Synced(self.manifest.number, started)
        return self.manifest.positions

    def _plan(self, changes: Changes) -> Plan:
        try:
            return plan(
                changes,
                list(self.segments.values()),
                self.manifest.counts,
                self._settled_tables().schemas,
                self._embed,
                self._living_aliases(),
                self._living_titles(),
                self.passages,
            )
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        """Drop what already stands where a batch that failed would have brought it."""
        self._aliases = self._titles = None

    def _settled_tables(self) -> Tables:
        """The tables as the newest manifest names them: rows that a failed commit left behind are taken back."""
        if self.tables.versions != self.manifest.tables:
            self.tables.open(self.manifest.tables)
        return self.tables

    def _write(self, batch: Plan) -> None:
        """Write the rows of a batch on top of exactly the newest manifest."""
        for attempt in range(ATTEMPTS):
            try:
                # The tables do not know of one another; side by side they take little longer than the slowest.
                tasks = [_POOL.submit(self._write_table, batch, name) for name in records.TABLES]
                wait(tasks)
                for task in tasks:
                    task.result()
                return
            except VersionGap as gap:
                self._check_epoch()
                if attempt == ATTEMPTS - 1:
                    raise TablesMoved(
                        gap.message, hint="find the other process that writes this folder and stop it"
                    ) from gap
                self.tables.open(self.manifest.tables)

    def _write_table(self, batch: Plan, name: records.TableName) -> None:
        self.tables.delete(name, batch.delete[name])
        self.tables.add(name, batch.add[name])

    def _commit(self, **change: Any) -> None:
        manifest = self.manifest.model_copy(
            update={
                "number": self.manifest.number + 1,
                "time": now(),
                "parent": self.manifest.checksum,
                "tables": dict(self.tables.versions),
                **change,
            }
        ).sealed()
        if not self.manifests.commit(manifest):
            raise self._fenced()
        self.manifest = manifest
        self._history[manifest.number] = manifest.held

    def _check_epoch(self) -> None:
        if not self.manifests.is_newest(self.manifest.number):
            raise self._fenced()

    def _fenced(self) -> WriterFenced:
        return WriterFenced(
            f"another writer took over {self.folder}: "
            f"snapshot {self.manifest.number + 1} is not from epoch {self.manifest.epoch}",
            hint="nothing of this batch is visible; stop this process, its events are still in the log",
        )

    def _living_aliases(self) -> Aliases | None:
        """Vectors of all entities, read when the first batch needs them."""
        made = self.manifest.fingerprint
        if self._aliases is None and made.alias_threshold is not None:
            self._aliases = Aliases(made.dimensions, made.alias_threshold, made.alias_same_digits)
            rows = self.tables.dataset("entities").to_table()
            self._aliases.bear(
                [records.entity(row) for row in rows.drop_columns("vector").to_pylist()], records.matrix(rows["vector"])
            )
        return self._aliases

    def _living_titles(self) -> Titles | None:
        """All titles, read when the first batch needs them."""
        if self._titles is None and self.manifest.fingerprint.sentences:
            self._titles = Titles.of(self.segments.values())
        return self._titles
