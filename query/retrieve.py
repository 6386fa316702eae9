"""From a question to an answer: embed it, let a mode rank, fetch what was found; all from one snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from index.attributes import Mask
from index.errors import BadRequest, WrongFingerprint
from index.models.base import Embedder
from index.snapshot import Snapshot
from index.types import Passage, Question, Role

from .explain import explain
from .explanation import Explanation, Why
from .limits import DEFAULT_K, DEFAULT_MODE, MAX_K, MAX_QUESTION
from .modes.base import Mode, ranked
from .modes.bm25 import BM25Mode
from .modes.cogito import CogitoMode
from .modes.dense import DenseMode
from .modes.fused import FusedMode
from .modes.hybrid import HybridMode

MODES: Final[Mapping[str, Mode]] = {
    "fused": FusedMode(),
    "cogito": CogitoMode(),
    "dense": DenseMode(),
    "bm25": BM25Mode(),
    "hybrid": HybridMode(),
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FoundPassage(BaseModel):
    """A passage of the answer, with the text and the memory that belong to one another."""

    key: str
    """Content address, 32 hexadecimal digits."""
    document: str
    title: str
    text: str
    memory: str | None
    """What the passage says, in full sentences with full names; null where nothing but the text is known."""
    score: float
    """Larger is better; comparable within this answer only."""
    metadata: dict[str, Any]
    event_time: datetime | None
    why: Why | None = None


class Answer(BaseModel):
    """Passages best first, and the snapshot that all of them belong to."""

    question: str
    mode: str
    snapshot: int
    watermark: datetime | None
    """When the newest event in this snapshot was accepted; null where it holds none."""
    staleness_seconds: float | None
    """How long the oldest accepted event that is missing here has been waiting; 0 where none is, null where that is
    unknown, as for a snapshot that was asked for by `as_of`.
    """
    notes: dict[str, str]
    """What the asker should know, such as {"fallback": "dense"}."""
    passages: list[FoundPassage]
    explanation: Explanation | None = None


def retrieve(
    snapshot: Snapshot,
    embedder: Embedder,
    text: str,
    *,
    mode: str = DEFAULT_MODE,
    k: int = DEFAULT_K,
    eligible: Mask | None = None,
    with_explanation: bool = False,
    staleness_seconds: float | None = None,
) -> Answer:
    """Ask one snapshot for the best of the passages that a filter's mask leaves eligible (None: all).

    `staleness_seconds` is for those who know the log to say; see Answer. Raises BadRequest for a question, `mode` or
    `k` that makes no sense, WrongFingerprint where the index was made by another embedder, and what the embedder
    raises. Only the vectors that the mode reads are asked for.
    """
    _check_question(text)
    if not 1 <= k <= MAX_K:
        raise BadRequest(f"an answer of {k} passages is not possible", hint=f"ask for k of 1 to {MAX_K}")
    if mode not in MODES:
        raise BadRequest(f"there is no mode {mode[:80]!r}", hint=f"the modes are {', '.join(MODES)}")
    question = _embedded(snapshot, embedder, text, MODES[mode].roles)
    ranking = ranked(MODES[mode], snapshot, question, k, eligible)
    explanation, whys = explain(snapshot, ranking) if with_explanation else (None, {})
    rows = snapshot.passage_rows(passage for passage, _ in ranking.found)
    return Answer(
        question=text,
        mode=mode,
        snapshot=snapshot.manifest.number,
        watermark=_moment(snapshot.manifest.watermark or None),
        staleness_seconds=staleness_seconds,
        notes=dict(ranking.notes),
        passages=[_found(rows[passage], score, whys.get(passage)) for passage, score in ranking.found],
        explanation=explanation,
    )


def _check_question(text: str) -> None:
    if len(text) > MAX_QUESTION:
        hint = f"ask in at most {MAX_QUESTION} characters; a text of that length belongs into the index"
        raise BadRequest(f"the question has {len(text)} characters", hint=hint)
    if not text.strip():
        raise BadRequest("the question is empty", hint="ask something")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        hint = "repair the text at its source"
        raise BadRequest(
            f"the question is not valid Unicode (lone surrogate at character {error.start})", hint=hint
        ) from None


def _embedded(snapshot: Snapshot, embedder: Embedder, text: str, roles: tuple[Role, ...]) -> Question:
    made = snapshot.manifest.fingerprint
    if roles and embedder.fingerprint != made.embedder:
        raise WrongFingerprint(
            f"the index was made with {made.embedder} and the question would be embedded with {embedder.fingerprint}",
            hint="mode bm25 needs no model; say in former_embedding_base_url or former_embedding_folder where that "
            "of the index is, or run `gistream rebuild NAMESPACE`",
        )
    vectors: dict[Role, NDArray[np.float32]] = {role: embedder.embed([text], role)[0] for role in roles}
    none = np.zeros(made.dimensions, np.float32)
    return Question(
        text,
        vectors.get("fact-question", none),
        vectors.get("passage-question", none),
        lambda part: embedder.embed([part], "passage-question")[0],
    )


def _found(row: Passage, score: float, why: Why | None) -> FoundPassage:
    return FoundPassage(
        key=row.key.hex(),
        document=row.document,
        title=row.title,
        text=row.text,
        memory=row.extraction.memory or None,
        score=score,
        metadata=json.loads(row.metadata),
        event_time=_moment(row.event_time),
        why=why,
    )


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)
