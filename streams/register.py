"""The topics that a data folder knows: a topic that was made anew under its name is another one, with other positions.

A token and the positions of a manifest name the place of an event by its topic. If `documents` were deleted and made
again, its offsets would start anew, and what was stored of the former ones would say that the new events are there. So
every topic is registered under the id that its cluster gave it, and each id has source names of its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from index.errors import Torn, WrongTopics
from index.exclusive import create, sync

from .connection import DOCUMENTS, UNDERSTOOD, Connection

KINDS: Final = (DOCUMENTS, UNDERSTOOD)
"""What has positions. Dead letters have none, so nobody minds when their topic is made anew."""

SPAN: Final = 2**40
"""How many versions an incarnation of a topic may give (microseconds and offsets together; 12 days of the former)."""


class Identity(NamedTuple):
    """A topic as its cluster knows it."""

    id: UUID
    partitions: int


class Incarnation(BaseModel):
    """A topic of events from when it was made until it is deleted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    number: int
    """Counts those of this kind from 1."""
    topic: str
    """Its name in the cluster."""
    id: UUID
    partitions: int
    """For life: an event's partition follows from this number."""
    since: int
    """An event without version has this plus its offset; microseconds since 1970 when it was registered, or later."""

    def source(self, partition: int) -> str:
        """The name of a partition in tokens and positions: `documents-2`, and in later incarnations `documents~2-2`."""
        return f"{self.kind}{'' if self.number == 1 else f'~{self.number}'}-{partition}"

    def partition(self, source: str) -> int | None:
        """The partition that has this name; None for a name of anything else, former incarnations included."""
        name, dash, number = source.rpartition("-")
        if f"{name}{dash}" != self.source(0)[:-1] or not number.isascii() or not number.isdigit():
            return None
        partition = int(number)
        return partition if partition < self.partitions and source == self.source(partition) else None

    def version(self, offset: int) -> int:
        """What orders an event at `offset` that came without version."""
        return self.since + offset


@dataclass(frozen=True, slots=True)
class Register:
    """The incarnations that count now."""

    documents: Incarnation
    understood: Incarnation

    @classmethod
    def open(
        cls,
        data: Path,
        connection: Connection,
        identities: Callable[[Connection], Mapping[str, Identity]],
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> Self:
        """Ask the cluster for its topics, and register those that are new. Safe for several processes at once.

        `identities` gives them by kind (cluster.identities); `clock` microseconds since 1970. Raises WrongTopics for a
        topic that is missing, has other partitions than when it was registered, or was replaced before; Torn for a
        damaged file; what `identities` raises.
        """
        found = identities(connection)
        documents, understood = (_present(data, kind, connection.topic(kind), found.get(kind), clock) for kind in KINDS)
        return cls(documents, understood)

    def incarnation(self, source: str) -> Incarnation | None:
        """The topic of which `source` is a partition now; None for the log, and for topics that are no more."""
        return next((one for one in (self.documents, self.understood) if one.partition(source) is not None), None)


def registered(data: Path, kind: str) -> list[Incarnation]:
    """All that the folder knows of a kind, oldest first. Raises Torn for a file that cannot be read."""
    numbers = sorted(
        int(match[1])
        for path in (data / "topics").glob(f"{kind}.*.json")
        if (match := re.fullmatch(r".*\.([1-9]\d*)\.json", path.name))
    )
    return [_read(_path(data, kind, number)) for number in numbers]


def _present(data: Path, kind: str, topic: str, found: Identity | None, clock: Callable[[], int]) -> Incarnation:
    if found is None:
        raise WrongTopics(f"there is no topic {topic}", hint="make it with `gistream topics create`")
    while True:
        known = registered(data, kind)
        if (flaw := difference(known, found)) is not None:
            raise WrongTopics(f"topic {topic} {flaw}", hint=_REMEDY)
        if known and known[-1].id == found.id:
            return known[-1]
        number, since = (known[-1].number + 1, known[-1].since + SPAN) if known else (1, 0)
        new = Incarnation(
            kind=kind,
            number=number,
            topic=topic,
            id=found.id,
            partitions=found.partitions,
            since=max(clock(), since),
        )
        if _create(_path(data, kind, new.number), new.model_dump_json().encode()):
            return new


def difference(known: list[Incarnation], found: Identity) -> str | None:
    """Why a topic as it was found cannot go on where the known ones were; None where it can."""
    same = next((one for one in known if one.id == found.id), None)
    if same is None:
        return None
    if same.partitions != found.partitions:
        return f"has {found.partitions} partitions, and had {same.partitions} when this data folder met it"
    if same != known[-1]:
        return f"was replaced by {known[-1].topic} ({known[-1].id}) in this data folder, and came back"
    return None


def _path(data: Path, kind: str, number: int) -> Path:
    return data / "topics" / f"{kind}.{number}.json"


def _read(path: Path) -> Incarnation:
    try:
        return Incarnation.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise Torn(f"{path} is damaged ({error.error_count()} errors)", hint="restore it from a backup") from None


def _create(path: Path, content: bytes) -> bool:
    """Make a file whole and durable under its name; False where that name is taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not create(path, content):
        return False
    sync(path.parent)
    return True


_REMEDY: Final = (
    "delete the topics documents and understood, make them with `gistream topics create`, and send again what was not "
    "indexed yet"
)
