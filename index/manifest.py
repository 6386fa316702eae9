"""Manifests: the one commit point of a namespace, numbered files that are created whole and never changed."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import NotFound, SnapshotGone, Torn, WrongFingerprint
from .exclusive import create
from .graph.segment import SegmentFile
from .records import TableName

FORMAT = 2
"""Changes when an older gistream could not read what this one writes."""
FEATURES = 2
"""Changes when the same documents would make other rows, terms or passages: the index should be rebuilt."""

_NAME = re.compile(r"(\d{20})\.json")


class Fingerprint(BaseModel):
    """How an index was made. Two indexes are comparable, and one may be continued, where these are equal."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    features: int = FEATURES
    chunker: str
    extractor: str
    embedder: str
    dimensions: int
    alias_threshold: float | None
    """None: no alias edges and no entity vectors."""
    alias_same_digits: bool = True
    sentences: bool = True
    """Whether sentences, their names and vectors are kept, which only the mode `fused` reads."""


class Counts(BaseModel):
    """Sizes of one snapshot; tombstones are no documents."""

    model_config = ConfigDict(frozen=True)

    documents: int = 0
    passages: int = 0
    entities: int = 0
    facts: int = 0


class Held(NamedTuple):
    """What one snapshot keeps from being cleaned up."""

    time: datetime
    tables: Mapping[TableName, int]
    files: frozenset[str]


class Manifest(BaseModel):
    """One snapshot: which version of every table and which segments belong together, and how far the log is in it.

    Snapshot 42 with positions {"log": 1007} reflects every event of this namespace up to and including position
    1007, and none after.
    """

    model_config = ConfigDict(frozen=True)

    number: int
    epoch: int
    """Grows with every writer that opens the namespace; the larger one rules."""
    cause: Literal["open", "batch", "maintenance"]
    time: datetime
    parent: str
    """Checksum of the manifest before it; empty for the first."""
    fingerprint: Fingerprint
    tables: Mapping[TableName, int]
    segments: tuple[SegmentFile, ...]
    """Their sum is the state."""
    delta: SegmentFile | None
    """What this commit changed against its parent; None where it changed nothing that a reader holds."""
    positions: Mapping[str, int]
    watermark: int = 0
    """Stamp (microseconds) of the newest event that this snapshot reflects: how fresh it is."""
    newest_event_time: int | None = None
    """Largest event_time (microseconds) seen so far."""
    counts: Counts = Counts()
    checksum: str = ""

    @property
    def held(self) -> Held:
        files = (*self.segments, *([self.delta] if self.delta is not None else []))
        return Held(self.time, self.tables, frozenset(file.name for file in files))

    def sealed(self) -> Manifest:
        return self.model_copy(update={"checksum": self._digest()})

    def verify(self, path: Path) -> None:
        if self.checksum != self._digest(as_read=True):
            raise Torn(f"manifest {path} fails its checksum")

    def require_format(self, folder: Path) -> None:
        """Raises WrongFingerprint for an index whose tables and segments an older gistream wrote."""
        if self.fingerprint.format < FORMAT:
            made = f"the index in {folder} has format {self.fingerprint.format}, and this gistream reads {FORMAT}"
            raise WrongFingerprint(made, hint="run `gistream rebuild NAMESPACE`: it makes it anew from its documents")

    def require(self, fingerprint: Fingerprint, folder: Path) -> None:
        """Raises WrongFingerprint, naming every difference, unless the index was made the way `fingerprint` says."""
        has, wants = self.fingerprint.model_dump(), fingerprint.model_dump()
        differences = [f"{name} is {has[name]!r} and not {wants[name]!r}" for name in wants if has[name] != wants[name]]
        if differences:
            hint = "use the former settings, or run `gistream rebuild NAMESPACE`"
            raise WrongFingerprint(f"the index in {folder} was made otherwise: {'; '.join(differences)}", hint=hint)

    def _digest(self, *, as_read: bool = False) -> str:
        """`as_read`: of the fields that the file has, which in an older one may not be all."""
        dumped = self.model_copy(update={"checksum": ""}).model_dump_json(exclude_unset=as_read)
        return blake2b(dumped.encode(), digest_size=16).hexdigest()


class Manifests:
    """The folder of manifests of one namespace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.torn = folder / "torn"

    def create(self) -> None:
        self.torn.mkdir(parents=True, exist_ok=True)

    def path(self, number: int) -> Path:
        return self.folder / f"{number:020d}.json"

    def numbers(self) -> list[int]:
        """Numbers of all manifests that stand, ascending."""
        return sorted(_numbers(self.folder))

    def next_number(self) -> int:
        """Above every number that was ever used, torn ones included: a number names one state for ever."""
        return max([0, *_numbers(self.folder), *_numbers(self.torn)]) + 1

    def is_newest(self, number: int) -> bool:
        """Whether none stands that has a larger number; asked at every commit, so it reads names and no numbers."""
        own = self.path(number).name
        return all(name <= own for name in os.listdir(self.folder) if name[0].isdigit())

    def exists(self, number: int) -> bool:
        return self.path(number).exists()

    def read(self, number: int) -> Manifest:
        """One manifest, verified.

        Raises NotFound for a number never committed, SnapshotGone for one beyond the retention, Torn for damage.
        """
        path = self.path(number)
        try:
            manifest = Manifest.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            if 0 < number < max(self.numbers(), default=0):
                raise self.gone(number) from None
            raise NotFound(f"there is no snapshot {number}", hint="`gistream snapshots NAMESPACE` lists them") from None
        except ValidationError:
            raise Torn(f"manifest {path} is damaged") from None
        if manifest.fingerprint.format > FORMAT:
            # Its checksum covers what this version does not know, so it cannot even be told whether it is whole.
            made = f"{path} has format {manifest.fingerprint.format}, and this gistream knows formats up to {FORMAT}"
            raise WrongFingerprint(made, hint="use the newer gistream that wrote it")
        manifest.verify(path)
        return manifest

    def gone(self, number: int) -> SnapshotGone:
        """The error of a snapshot that was cleaned away; it names the nearest that stand."""
        numbers = self.numbers()
        at = bisect_left(numbers, number)
        nearest = " and ".join(str(near) for near in numbers[max(0, at - 1) : at + 1])
        return SnapshotGone(f"snapshot {number} is beyond the retention", hint=f"the nearest that stand: {nearest}")

    def newest(self) -> Manifest:
        """The manifest with the largest number. Raises NotFound where there is none, Torn for damage."""
        return self.read(max(self.numbers(), default=1))

    def commit(self, manifest: Manifest) -> bool:
        """Create the manifest under its number; False where that number is taken: someone else has committed.

        The file is complete and on disk before it gets its name, so a reader never sees half of it.
        """
        if not create(self.path(manifest.number), manifest.model_dump_json().encode()):
            return False
        if self.is_newest(manifest.number):
            return True
        # The number was free again: what was committed under it was cleaned away, but not what came after.
        self.remove(manifest.number)
        return False

    def set_aside(self, number: int) -> None:
        """Move a manifest that does not hold to torn/; its number stays used."""
        self.create()
        os.replace(self.path(number), self.torn / self.path(number).name)

    def remove(self, number: int) -> None:
        self.path(number).unlink(missing_ok=True)


def now() -> datetime:
    return datetime.now(UTC)


def _numbers(folder: Path) -> Iterator[int]:
    if folder.exists():
        for name in os.listdir(folder):
            if match := _NAME.fullmatch(name):
                yield int(match[1])
