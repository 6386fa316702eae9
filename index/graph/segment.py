"""A segment: every relation of a batch, or of many summed, in one checksummed Arrow file that never changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import IntEnum
from hashlib import blake2b
from heapq import heapify, heappop, heapreplace
from pathlib import Path

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from ..errors import Torn
from .incidence import SCHEMA, Incidence


class Relation(IntEnum):
    """What a segment holds, in file order.

    Sums do not depend on any order: every relation is linear in passages and documents, but ALIASES and TITLED, which
    are joins, and kept exact by the writer.
    """

    MENTIONS = 0
    """entity x passage: 1 where a fact of the passage names the entity (matrix B of CogitoRAG)."""
    SUPPORTS = 1
    """fact x passage: 1 where the passage states the fact."""
    LINKS = 2
    """entity x entity, smaller key first: over the facts that link the two, the number of passages that support them.
    """
    ALIASES = 3
    """entity x entity, both directions: cosine of the two names in 1/10,000."""
    TERMS = 4
    """term x passage: term frequency."""
    SPELLINGS = 5
    """entity or fact x spelling, with its text: the passages that write it so (votes)."""
    PASSAGES = 6
    """passage x content of its row: 1. What was added to and deleted from the table, so that a reader can follow."""
    ENTITIES = 7
    """entity x content of its row: 1."""
    FACTS = 8
    """fact x content of its row: 1."""
    SENTENCES = 9
    """passage x sentence: its place from 1. Also what was added to and deleted from the table."""
    NAMES = 10
    """name x sentence: naming.SURE and naming.DOUBTFUL, each where the sentence has the name so."""
    TITLED = 11
    """name x sentence: 1 where the words of a title stand in the sentence; a join that titles and sentences share."""
    ABOUT = 12
    """passage x name: 1 where its document is about it."""
    TITLES = 13
    """name x itself, with its normal form: the passages about it (votes); it is a title while there are any."""
    TURNS = 14
    """session x turn, with the turn's place in the session and its passage: 1."""


class Segment(Mapping[Relation, Incidence]):
    """A value with the algebra of its relations: segments add, negate and cancel."""

    def __init__(self, relations: Mapping[Relation, Incidence]) -> None:
        self._relations = {relation: relations.get(relation) or Incidence.empty() for relation in Relation}

    def __getitem__(self, relation: Relation) -> Incidence:
        return self._relations[relation]

    def __iter__(self) -> Iterable[Relation]:  # type: ignore[override]
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    @property
    def entries(self) -> int:
        return sum(len(incidence) for incidence in self._relations.values())

    def __neg__(self) -> Segment:
        return Segment({relation: -incidence for relation, incidence in self.items()})

    def __add__(self, other: Segment) -> Segment:
        return Segment({relation: incidence + other[relation] for relation, incidence in self.items()})


def total(segments: Iterable[Segment]) -> Segment:
    """The sum; always the two smallest next, so that every entry is copied about log2(number of segments) times."""
    waiting = [(segment.entries, place, segment) for place, segment in enumerate(segments)]
    heapify(waiting)
    while len(waiting) > 1:
        _, place, one = heappop(waiting)
        _, _, other = waiting[0]
        both = one + other
        heapreplace(waiting, (both.entries, place, both))
    return waiting[0][2] if waiting else Segment({})


class SegmentFile(BaseModel):
    """A segment as a manifest names it."""

    model_config = ConfigDict(frozen=True)

    name: str
    size: int
    checksum: str
    entries: int


def write_segment(folder: Path, name: str, segment: Segment) -> SegmentFile:
    """Write `folder/name` whole and return what a manifest must know of it. The name must be new."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        for relation in Relation:
            writer.write_batch(segment[relation].to_batch())
    data = sink.getvalue()
    with open(folder / name, "xb") as file:
        file.write(data)
    return SegmentFile(name=name, size=data.size, checksum=_checksum(data), entries=segment.entries)


def read_segment(folder: Path, file: SegmentFile) -> Segment:
    """Map the file into memory after verifying size and checksum.

    Raises Torn with the path where the bytes are not those that were written.
    """
    path = folder / file.name
    try:
        if os.path.getsize(path) != file.size:
            raise Torn(f"segment {path} has {os.path.getsize(path)} bytes and not {file.size}")
        data = pa.memory_map(str(path)).read_buffer()
    except FileNotFoundError:
        raise Torn(f"segment {path} is missing") from None
    if _checksum(data) != file.checksum:
        raise Torn(f"segment {path} fails its checksum")
    reader = pa.ipc.open_file(data)
    return Segment({relation: Incidence.from_batch(reader.get_batch(relation)) for relation in Relation})


def _checksum(data: pa.Buffer) -> str:
    return blake2b(data, digest_size=16).hexdigest()
