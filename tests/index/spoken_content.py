"""Everything that a snapshot holds of sentences, titles and sessions, by key instead of by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from index.graph.rows import SparseRows
from index.snapshot import Snapshot
from index.types import Key

from .written import EMBEDDER

QUESTION = EMBEDDER.embed(["Who met the Osprey?"])[0].astype(np.float64)


def spoken_content(snapshot: Snapshot) -> dict[str, Any]:
    spoken, kinds = snapshot.spoken, snapshot.spoken.kinds
    passages, sentences, names, words = (
        dict(enumerate(numbers.keys))
        for numbers in (snapshot.kinds.passages, kinds.sentences, kinds.names, kinds.words)
    )
    living = snapshot.live_passages
    best = spoken.best(living, QUESTION)
    said = np.concatenate([np.empty(0, np.int64), *(spoken.sentences(passage)[0] for passage in living.tolist())])
    scores = spoken.vectors.scores(said, QUESTION)
    sessions = {
        kinds.sessions.keys[session]: [passages[p] for _, p in held] for session, held in spoken.sessions.items()
    }
    return {
        "said": rows_by_key(spoken.said, passages, sentences),
        "named": rows_by_key(spoken.named, sentences, names),
        "having": rows_by_key(spoken.having, names, passages),
        "titles": rows_by_key(spoken.titles, names, words),
        "title words": rows_by_key(spoken.title_words, words, names),
        "about": {passages[p]: names[name] for p, name in enumerate(spoken.about.tolist()) if name >= 0},
        "sessions": sessions,
        "neighbours": {
            passages[p]: [passages.get(beside) for beside in pair]
            for p, pair in enumerate(spoken.neighbours.tolist())
            if max(pair) >= 0
        },
        "sentence vectors": {sentences[s]: score for s, score in zip(said.tolist(), scores.tolist(), strict=True)},
        "best sentences": {passages[p]: score for p, score in zip(living.tolist(), best.tolist(), strict=True)},
    }


def rows_by_key(rows: SparseRows, names: Mapping[int, Key], cols: Mapping[int, Key]) -> dict[Key, dict[Key, int]]:
    """Row key -> column key -> weight; empty rows left out."""
    found = {}
    for number in range(rows.n_rows):
        held, weights = rows.row(number)
        if len(held):
            found[names[number]] = {cols[c]: w for c, w in zip(held.tolist(), weights.tolist(), strict=True)}
    return found
