"""Random histories of a namespace: what may happen to documents, writers and files, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from hypothesis import strategies as st

from index.types import DocumentEvent

NAMESPACE = "history"

TITLES = ("", "The Amber Lock", "Port Ellery", "amber lock")
TURNS: tuple[dict[str, Any], ...] = ({"session": "s", "order": 1}, {"session": "s", "order": 2}, {"doc_id": 7})
SENTENCES = (
    "Mara Quill repaired the Amber Lock in 1931.",
    "mara quill lived in Port Ellery.",
    "Port Ellery lies north of Tarn Bay.",
    "The ferry Osprey sank off Tarn Bay in 1931.",
    "Ilan Brock built the Osprey.",
    "I. Brock built the osprey for Port Ellery.",
    "Nobody wrote anything down that winter.",
    "The Amber-Lock was painted by Ilan Brock and Mara Quill.",
    "tarn bay froze; Port Ellery did not.",
    "In 1932 the Osprey was raised by Mara Quill.",
)


@dataclass(frozen=True)
class Send:
    """An event reaches the log."""

    event: DocumentEvent


@dataclass(frozen=True)
class Replay:
    """An earlier event reaches the log again, with the version it had."""

    which: int


@dataclass(frozen=True)
class Happen:
    """Something that must change nothing."""

    what: Literal["step", "restart", "merge", "compact", "index", "clean", "refresh"]


Step = Send | Replay | Happen

documents = st.sampled_from(["a", "b", "c", "d/ü"])
versions = st.none() | st.none() | st.integers(0, 6)
texts = st.lists(st.sampled_from(SENTENCES), max_size=14).map(" ".join)

upserts = st.builds(
    DocumentEvent,
    namespace=st.just(NAMESPACE),
    id=documents,
    version=versions,
    title=st.sampled_from(TITLES),
    text=texts,
    metadata=st.sampled_from([{}, {"shelf": 1}, {"shelf": 2, "by": "Quill"}, *TURNS]),
    event_time=st.none() | st.sampled_from([datetime(1931, 4, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)]),
)
deletes = st.builds(DocumentEvent, op=st.just("delete"), namespace=st.just(NAMESPACE), id=documents, version=versions)

steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Send, upserts),
    st.builds(Send, upserts),
    st.builds(Send, upserts),
    st.builds(Send, deletes),
    st.builds(Replay, st.integers(0, 10)),
    st.builds(Happen, st.sampled_from(["step", "step", "restart", "merge", "compact", "index", "clean", "refresh"])),
)
histories: st.SearchStrategy[Sequence[Step]] = st.lists(steps, min_size=1, max_size=16)
