"""The recipe of `fused` (methods/fused.md, section 3) done the slow way: all passages, all sentences, dictionaries."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from index.delta import indexed_text
from index.naming import SURE, name_form, sentences_of, telling, title_form, words
from index.text import CONNECTORS, MOST_WORDS, STOP_WORDS, names, terms
from index.types import Passage

Embed = Callable[[str], Any]


class Naive:
    """All passages of a store, and everything that is counted over them."""

    def __init__(self, passages: Sequence[Passage], embed: Embed) -> None:
        self.passages = list(passages)
        self.embed = embed
        self.about = [title_form(passage.about) for passage in self.passages]
        self.titles = {form for form in self.about if form}
        self.vectors = [embed(indexed_text(passage)).astype(np.float64) for passage in self.passages]
        said = [sentences_of(passage) for passage in self.passages]
        self.sentences = [[embed(s.text).astype(np.float16).astype(np.float64) for s in found] for found in said]
        sure = {form for found in said for s in found for form, weight in s.names.items() if weight >= SURE}
        self.names = [
            [
                {form for form in s.names if form in sure | self.titles}
                | {t for t in self.titles if telling(t) and f" {t} " in f" {' '.join(s.words)} "}
                for s in found
            ]
            for found in said
        ]
        self.having = [set().union(*names, {about} - {""}) for names, about in zip(self.names, self.about, strict=True)]

    def df(self, name: str) -> int:
        return sum(name in having for having in self.having)

    def spec(self, name: str) -> float:
        n, df = len(self.passages), self.df(name)
        return max(0.0, 1 - math.log(df) / math.log(n)) if n > 1 and df else 1.0

    def bm25(self, text: str) -> list[float]:
        counts = [terms(indexed_text(passage)) for passage in self.passages]
        lengths = [sum(count.values()) for count in counts]
        mean, n = sum(lengths) / max(1, len(lengths)), len(counts)
        scores = [0.0] * n
        for term, times in terms(text).items():
            df = sum(term in count for count in counts)
            for p, count in enumerate(counts):
                if term in count:
                    tf, idf = count[term], math.log(1 + (n - df + 0.5) / (df + 0.5))
                    scores[p] += times * idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * lengths[p] / mean))
        best = max(scores, default=0.0)
        return [score / best for score in scores] if best > 0 else scores

    def neighbours(self, p: int) -> list[int]:
        place = [json.loads(passage.metadata) for passage in self.passages]
        if "session" not in place[p]:
            return []
        same = [q for q in range(len(place)) if place[q].get("session") == place[p]["session"]]
        same.sort(key=lambda q: (place[q].get("order", 0), self.passages[q].document))
        at = same.index(p)
        return [*same[max(0, at - 1) : at], *same[at + 1 : at + 2]]

    def titled(self, text: str) -> dict[str, float]:
        tokens = [(form, token) for token in text.split() for form in words(token)]
        spans = [
            (start, end)
            for start in range(len(tokens))
            for end in range(start + 1, len(tokens) + 1)
            if " ".join(form for form, _ in tokens[start:end]) in self.titles
        ]
        found: dict[str, float] = {}
        for start, end in spans:
            if any(s <= start and end <= e and (s, e) != (start, end) for s, e in spans):
                continue
            capital = any(
                next(letter for letter in token if letter.isalnum()).isupper() and not (at == 0 and form in STOP_WORDS)
                for at, (form, token) in enumerate(tokens)
                if start <= at < end
            )
            title = " ".join(form for form, _ in tokens[start:end])
            sure = (1.0 if capital else 0.5 if end - start > 1 else 0.25) * self.spec(title)
            found[title] = max(found.get(title, 0.0), sure)
        for run in names(text):
            said = set(name_form(run.text).split())
            for title in self.titles:
                has = set(title.split())
                if not (said & has - CONNECTORS):
                    continue
                overlap = sum(map(self.weight, said & has)) / sum(map(self.weight, said | has))
                if overlap >= 0.3:
                    found[title] = max(found.get(title, 0.0), overlap**2)
        return found

    def weight(self, word: str) -> float:
        held = sum(word in title.split() for title in self.titles)
        return 0.1 if word in CONNECTORS else math.log((len(self.titles) + 1) / (held + 0.5))

    def rank(self, text: str) -> list[tuple[Passage, float]]:
        n, q = len(self.passages), self.embed(text).astype(np.float64)
        titled, asked_words = self.titled(text), self.bm25(text)
        titles = [0.3 * titled.get(about, 0.0) for about in self.about]

        def base(v: Any, share: Sequence[float]) -> list[float]:
            best = [max((float(v @ s) for s in found), default=0.0) for found in self.sentences]
            return [0.5 * float(v @ self.vectors[p]) + 0.5 * best[p] + 0.3 * share[p] + titles[p] for p in range(n)]

        b = base(q, asked_words)
        keys = [passage.key for passage in self.passages]
        anchor = min(range(n), key=lambda p: (-round(b[p], 9), keys[p]))
        tokens, naming = text.split(), terms(self.about[anchor]).keys()
        kept = [t for t in tokens if t.lower() in CONNECTORS or naming.isdisjoint(terms(t))]
        if 2 <= len(kept) < len(tokens):
            rest = " ".join(kept)
            m = 0.3 * q + 0.7 * self.embed(rest).astype(np.float64)
            share = [0.3 * one + 0.7 * other for one, other in zip(asked_words, self.bm25(rest), strict=True)]
            b = [b[p] if p == anchor else other for p, other in enumerate(base(m, share))]
        beside = [max((b[x] for x in self.neighbours(p)), default=-math.inf) for p in range(n)]
        b = [b[p] + 0.3 * max(0.0, beside[p] - b[p]) for p in range(n)]
        return self._leap(q, self._asked(text), b)

    def _asked(self, text: str) -> set[str]:
        said = words(text)
        return {" ".join(said[i : i + size]) for i in range(len(said)) for size in range(1, MOST_WORDS + 1)} | {
            title for title in self.titled(text) if f" {title} " in f" {' '.join(said)} "
        }

    def _leap(self, q: Any, asked: set[str], b: Sequence[float]) -> list[tuple[Passage, float]]:
        n = len(self.passages)
        gain, back, done = [0.0] * n, [0.0] * n, set()

        def s(p: int) -> float:
            return b[p] + gain[p] + back[p]

        def order(p: int) -> tuple[float, float, bytes]:
            return -round(s(p), 9), -round(b[p], 9), self.passages[p].key

        for _ in range(8):
            left = [p for p in range(n) if p not in done]
            if not left:
                break
            f = min(left, key=order)
            trust = math.exp((s(f) - max(map(s, range(n)))) / 0.15)
            if trust < 0.02:
                break
            done.add(f)
            ceiling, reward = s(f) - 0.1, back[f]
            for e in sorted(self.having[f] - asked):
                if self.df(e) < 2 or not self.sentences[f]:
                    continue
                w = max(
                    float(q @ vector)
                    for vector, names in zip(self.sentences[f], self.names[f], strict=True)
                    if e in names or e == self.about[f]
                )
                for p in range(n):
                    if p != f and e in self.having[p]:
                        v = 1.2 * trust * w * self.spec(e) ** 1.5 * (1 if self.about[p] == e else 0.7)
                        v = max(0.0, min(v, ceiling - b[p]))
                        gain[p], reward = max(gain[p], v), max(reward, 0.2 * v)
            back[f] = reward
        return [
            (self.passages[p], s(p)) for p in sorted(range(n), key=lambda p: (-round(s(p), 9), self.passages[p].key))
        ]
