"""Why `fused` found a passage: which title the question named, and from which sentence over which name it leapt."""

from __future__ import annotations

import numpy as np

from index.naming import name_form, name_key
from index.snapshot import Snapshot
from index.text import names, sentences, uncamel
from index.types import Passage

from .explanation import Explanation, Leapt, NamedTitle, Parts, Why
from .modes.base import Scored
from .modes.fused import FusedTrace
from .modes.mixture import Blend


class FusedTold:
    """Puts names and sentences to the numbers of a trace; reads every row it needs once."""

    def __init__(self, snapshot: Snapshot, trace: FusedTrace, found: tuple[Scored, ...]) -> None:
        self._snapshot, self._trace = snapshot, trace
        self._found = [passage for passage, _ in found]
        sources = {trace.leaps[passage].source for passage in self._found if passage in trace.leaps}
        anchor = set() if trace.blend is None else {trace.blend.anchor}
        self._rows = snapshot.passage_rows({*self._found, *sources, *anchor})

    def told(self) -> tuple[Explanation, dict[int, Why]]:
        blend, titles = self._trace.blend, self._snapshot.spoken.kinds.titles
        named = sorted(((sure, titles[title]) for title, sure in self._trace.asked.titles.items()), reverse=True)
        explanation = Explanation(
            titles=[NamedTitle(title=title, sure=sure) for sure, title in named],
            anchor=None if blend is None else self._rows[blend.anchor].document,
            rest=self._trace.rest,
        )
        return explanation, {} if blend is None else {passage: self._why(blend, passage) for passage in self._found}

    def _why(self, blend: Blend, passage: int) -> Why:
        mixture = blend.named if passage == blend.anchor else blend.asking
        [context] = blend.context(np.array([passage])).tolist()
        spoken = self._snapshot.spoken
        numbers, places = spoken.sentences(passage)
        best = None
        if len(numbers):
            scores = spoken.vectors.scores(numbers, mixture.vector)
            best = sentences(self._rows[passage].text)[int(places[np.argmax(scores)])]
        parts = Parts(
            passage=0.5 * float(mixture.cosines[passage]),
            sentence=0.5 * float(mixture.sentences[passage]),
            words=float(mixture.words[passage]),
            title=float(mixture.titles[passage]),
            context=context,
        )
        return Why(parts=parts, sentence=best, leapt=self._leapt(passage))

    def _leapt(self, passage: int) -> Leapt | None:
        leap = self._trace.leaps.get(passage)
        if leap is None:
            return None
        source = self._rows[leap.source]
        numbers, places = self._snapshot.spoken.sentences(leap.source)
        place = int(places[int(np.flatnonzero(numbers == leap.sentence)[0])])
        sentence = sentences(source.text)[place]
        name = self._written(leap.name, sentence, source)
        return Leapt(document=source.document, name=name, sentence=sentence, gain=leap.gain)

    def _written(self, name: int, sentence: str, source: Passage) -> str:
        """A name as the sentence writes it, or else as a title does: the index knows it by its address only."""
        key = self._snapshot.spoken.kinds.names.keys[name]
        for found in names(sentence):
            if name_key(name_form(uncamel(found.text))) == key:
                return found.text
        return self._snapshot.spoken.kinds.titles.get(name, source.about)
