"""From a batch of events to one commit: decide what wins, see what changed, read only that, and write it whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from index.clock import to_microseconds
from index.naming import about_document
from index.plan import Changes
from index.types import Accepted, Document, Extraction, Key, Passage
from index.writer import Writer

from .chunk import ChunkConfig, keyed
from .events import canonical_metadata
from .position import reflected

Understand = Callable[[Sequence[tuple[str, str]]], list[Extraction]]
"""(title, text) of passages -> what was read in each, in order."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a batch."""

    events: int
    superseded: int
    """Events that an equal or newer version of their document made void."""
    extracted: int
    """Passages that were read by the extractor, or looked up in what it said before."""
    reused: int
    """Passages of changed documents that stayed as they were."""
    degraded: int = 0
    """Passages among the extracted that the extractor could not read well."""
    commit_seconds: float = field(default=0.0, compare=False)
    """What the writer took, embedding included; of the machine and not of the batch, so not compared."""


@dataclass(slots=True)
class _Draft:
    """A batch's changes while they are collected."""

    documents: list[Document]
    replaced: list[Document]
    gone: list[Key]
    """Rows to remove."""
    kept: list[tuple[Key, Document]]
    """Rows to replace, with what was read in them before."""
    fresh: list[Passage]
    """Rows to add, not read yet."""
    reused: int = 0


def apply(
    writer: Writer, namespace: str, batch: Sequence[Accepted], chunker: ChunkConfig, understand: Understand
) -> Applied:
    """Commit a batch of one namespace: its events in the order of the log, all of them or none.

    Raises what the writer and `understand` raise; nothing is visible then, and the batch can be applied again.
    """
    current = writer.documents([accepted.event.id for accepted in batch])
    draft = _Draft([], [], [], [], [])
    winners = _winners(batch, current)
    for accepted in winners:
        _change(draft, namespace, accepted, current.get(accepted.event.id), chunker)
    rows = writer.passages([*draft.gone, *(key for key, _ in draft.kept)])
    extractions = understand([(passage.title, passage.text) for passage in draft.fresh])
    added = [
        replace(passage, extraction=extraction) for passage, extraction in zip(draft.fresh, extractions, strict=True)
    ]
    moved = [_under(document, rows[key]) for key, document in draft.kept]
    started = time.perf_counter()
    writer.commit(
        Changes(draft.documents, draft.replaced, list(rows.values()), [*added, *moved]),
        reflected(batch, writer.manifest.positions),
        max(accepted.stamp for accepted in batch),
    )
    commit_seconds = time.perf_counter() - started
    superseded, reused = len(batch) - len(winners), draft.reused + len(moved)
    degraded = sum(extraction.degraded for extraction in extractions)
    return Applied(len(batch), superseded, len(added), reused, degraded, commit_seconds)


def foresee(
    writer: Writer, namespace: str, earlier: Sequence[Accepted], batch: Sequence[Accepted], chunker: ChunkConfig
) -> list[tuple[str, str]]:
    """(title, text) of the passages that `apply` will want read for a batch that comes behind `earlier` events.

    As far as can be told now: what is missing, it reads in time. An event that an earlier one beats asks for nothing.
    """
    ids = {accepted.event.id for accepted in batch}
    current = writer.documents([*ids])
    draft = _Draft([], [], [], [], [])
    for accepted in _winners([*(one for one in earlier if one.event.id in ids), *batch], current):
        if accepted.position >= batch[0].position:
            _change(draft, namespace, accepted, current.get(accepted.event.id), chunker)
    return [(passage.title, passage.text) for passage in draft.fresh]


def passages_of(accepted: Accepted, chunker: ChunkConfig) -> list[Passage]:
    """Every passage of an event's document, in reading order and not read yet; a delete has none."""
    event, row = accepted.event, _row(accepted, ())
    if event.op == "delete":
        return []
    about = about_document(row.title, row.text, row.metadata)
    return [
        Passage(key, row.id, row.title, text, row.metadata, row.event_time, about=about)
        for key, text in keyed(event.namespace, event.id, event.text, chunker)
    ]


def wins_by(
    version: int, deleted: bool, title: str, text: str, metadata: str, event_time: int | None
) -> tuple[int, bool, bytes]:
    """The order of one document's versions: greater version; a delete before an upsert; greater content hash."""
    content = repr((title, text, metadata, event_time)).encode()
    return version, deleted, blake2b(content, digest_size=16).digest()


def _winners(batch: Iterable[Accepted], current: dict[str, Document]) -> list[Accepted]:
    """The events that beat their document's row and every other event of the batch, in order of the log."""
    best = {
        id: wins_by(row.version, row.deleted, row.title, row.text, row.metadata, row.event_time)
        for id, row in current.items()
    }
    winners: dict[str, Accepted] = {}
    for accepted in batch:
        row = _row(accepted, ())
        order = wins_by(row.version, row.deleted, row.title, row.text, row.metadata, row.event_time)
        if row.id not in best or order > best[row.id]:
            best[row.id] = order
            winners[row.id] = accepted
    return sorted(winners.values(), key=lambda accepted: accepted.position)


def _change(draft: _Draft, namespace: str, accepted: Accepted, old: Document | None, chunker: ChunkConfig) -> None:
    event = accepted.event
    pieces = [] if event.op == "delete" else keyed(namespace, event.id, event.text, chunker)
    new = _row(accepted, tuple(key for key, _ in pieces))
    draft.documents.append(new)
    before: set[Key] = set()
    if old is not None:
        draft.replaced.append(old)
        before = set(old.passages)
    draft.gone.extend(before.difference(new.passages))
    about = about_document(new.title, new.text, new.metadata)
    same_row = old is not None and (
        (old.title, old.metadata, old.event_time, about_document(old.title, old.text, old.metadata))
        == (new.title, new.metadata, new.event_time, about)
    )
    for key, text in pieces:
        if key in before and same_row:
            draft.reused += 1
        elif key in before and old is not None and old.title == new.title:
            draft.kept.append((key, new))
        else:
            # The title is read together with the text, so under another title a passage is read again.
            if key in before:
                draft.gone.append(key)
            draft.fresh.append(Passage(key, new.id, new.title, text, new.metadata, new.event_time, about=about))


def _row(accepted: Accepted, passages: tuple[Key, ...]) -> Document:
    event = accepted.event
    version = accepted.stamp if event.version is None else event.version
    if event.op == "delete":
        return Document(event.id, version, True, "", "", "{}", None, accepted.stamp, ())
    moment = None if event.event_time is None else to_microseconds(event.event_time)
    return Document(
        event.id,
        version,
        False,
        event.title,
        event.text,
        canonical_metadata(event.metadata),
        moment,
        accepted.stamp,
        passages,
    )


def _under(document: Document, passage: Passage) -> Passage:
    about = about_document(document.title, document.text, document.metadata)
    return replace(passage, metadata=document.metadata, event_time=document.event_time, about=about)
