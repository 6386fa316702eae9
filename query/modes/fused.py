"""`fused`: the passage a question names, then the rest of the question, then leaps over rare names that are shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from index.attributes import Mask
from index.errors import BadRequest
from index.snapshot import Snapshot
from index.types import Question, Role

from .asked import Asked, names_asked, rest_of
from .base import Float64s, Int64s, Ranking, leading
from .links import Leap, Linking, specificity
from .mixture import Blend, Mixture, WordShares


@dataclass(frozen=True, slots=True)
class FusedTrace:
    """What was named, what else was asked, and how each passage was reached."""

    asked: Asked
    rest: str | None
    """What was asked of all passages but the anchor; None where the whole question was."""
    blend: Blend | None
    """How each passage scores by itself; None where nothing was found."""
    leaps: Mapping[int, Leap]


@dataclass(frozen=True, slots=True)
class FusedMode:
    """One recipe for questions of several hops and for conversations: no model writes, nothing is trained, one setting.

    Constants are those of methods/fused.md, section 3; scores are sums of cosines and shares.
    """

    roles: ClassVar[tuple[Role, ...]] = ("passage-question",)

    word_weight: float = 0.3
    title_weight: float = 0.3
    rest_weight: float = 0.7
    """Of the rest of the question, once a passage is found; the whole question keeps what is left."""
    context_weight: float = 0.3
    linking: Linking = field(default_factory=Linking)
    candidate_k: int = 200
    """Passages looked at closely, for each way of finding some."""

    def rank(self, snapshot: Snapshot, question: Question, k: int, eligible: Mask | None = None) -> Ranking[FusedTrace]:
        """See Mode. Raises BadRequest where the index keeps no sentences."""
        if not snapshot.manifest.fingerprint.sentences:
            raise BadRequest(
                "this index keeps no sentences, which the mode fused reads",
                hint="ask in another mode, or set GISTREAM_SENTENCES=true and run `gistream rebuild NAMESPACE`",
            )
        asked = names_asked(snapshot.spoken, question.text, partial(specificity, snapshot))
        shares = WordShares(snapshot, question.text)
        whole = shares.of(question.text)
        named = Mixture(snapshot, question.to_passages, self.word_weight * whole, asked.titles, self.title_weight)
        found = named.candidates(self.candidate_k, eligible)
        if not len(found):
            return Ranking((), FusedTrace(asked, None, None, {}))
        [(anchor, _)] = leading(snapshot, found, named.of(found), 1)
        rest, asking = self._rest(snapshot, question, asked, shares, whole, anchor)
        if asking is not None:
            found = np.union1d(found, asking.candidates(self.candidate_k, eligible))
        blend = Blend(anchor, named, asking or named, snapshot.spoken.neighbours, self.context_weight)
        found = np.union1d(found, _beside(snapshot, found))
        question_vector = np.asarray(question.to_passages, np.float64)
        numbers, totals, leaps = self.linking.leap(snapshot, question_vector, asked.names, found, blend.of)
        if eligible is not None:
            numbers, totals = numbers[eligible[numbers]], totals[eligible[numbers]]
        return Ranking(leading(snapshot, numbers, totals, k), FusedTrace(asked, rest, blend, leaps))

    def _rest(
        self, snapshot: Snapshot, question: Question, asked: Asked, shares: WordShares, whole: Float64s, anchor: int
    ) -> tuple[str | None, Mixture | None]:
        """The rest of the question once the anchor is found, and the scores for it.

        `whole` are the shares of the whole question.
        """
        about = int(snapshot.spoken.about[anchor])
        if about < 0 or question.encode is None:
            return None, None
        rest = rest_of(question.text, snapshot.spoken.kinds.titles[about])
        if rest is None:
            return None, None
        # Not brought to unit length again: what is left of a question is less sure of itself, which keeps the anchor
        # in front.
        vector = (1 - self.rest_weight) * question.to_passages + self.rest_weight * question.encode(rest)
        words = (1 - self.rest_weight) * whole + self.rest_weight * shares.of(rest)
        return rest, Mixture(snapshot, vector, self.word_weight * words, asked.titles, self.title_weight)


def _beside(snapshot: Snapshot, passages: Int64s) -> Int64s:
    beside = np.unique(snapshot.spoken.neighbours[passages])
    return beside[beside >= 0]
