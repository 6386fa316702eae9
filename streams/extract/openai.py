"""An extractor that asks a model behind any endpoint that speaks OpenAI's chat completions with structured output."""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

from index.errors import ModelUnavailable
from index.metrics import Metrics
from index.text import clean, norm
from index.types import Extraction, Triple

from .base import Text
from .chat import Chat
from .failures import Unreadable, is_not_of_the_passage, short
from .prompts import VERSION, Answer, Combined, Facts, Memory, Names, Strategy
from .rules import RulesExtractor
from .spending import Spending

PATIENCE: Final = 3
"""A passage that fails so often while the endpoint answers others is given up: it must not hold up its namespace."""

A = TypeVar("A", bound=Answer)
_log = logging.getLogger(__name__)


class OpenAIExtractor:
    """Asks a model about every passage, a bounded number at a time, whichever namespaces they belong to.

    What the model cannot read is read by the rules and comes back `degraded`. The endpoint's address is not part of the
    fingerprint: the same model may move.
    """

    def __init__(
        self,
        model: str,
        spending: Spending,
        *,
        base_url: str | None = None,
        api_key: str = "none",
        strategy: Strategy = "combined",
        concurrency: int = 16,
        timeout: float = 60.0,
        max_retries: int = 3,
        most_tokens: int = 4096,
        metrics: Metrics | None = None,
    ) -> None:
        """`timeout` in seconds, for each try; `most_tokens` of one answer. `spending` is closed with the extractor.

        The client tries again what may pass (408, 409, 429, 5xx, no connection), so a call that fails ends after
        (max_retries + 1) · timeout and the pauses between tries.
        """
        self.concurrency = concurrency
        self.spending = spending
        self._name = f"openai:{model}:{strategy}-{VERSION}"
        self._strategy = strategy
        self._metrics = Metrics() if metrics is None else metrics
        self._metrics.watch("gistream_model_calls_in_flight", lambda: spending.under_way)
        self._chat = Chat(
            model,
            spending,
            self._metrics,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            max_retries=max_retries,
            most_tokens=most_tokens,
        )
        self._fallback = RulesExtractor()
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="gistream-model")
        self._steps: dict[tuple[Text, type[Answer]], Answer] = {}
        """Answers to passages that are not wholly read: they are paid for."""
        self._failures: Counter[Text] = Counter()
        self._answered: dict[Text, int] = {}
        """How often the endpoint had answered when a passage failed last."""
        weakref.finalize(self, _close, self._pool, spending)

    @property
    def fingerprint(self) -> str:
        return f"{self._name}:else-{self._fallback.fingerprint}"

    def extract(self, passages: Sequence[Text]) -> list[Extraction]:
        """See Extractor. Raises ModelUnavailable, ModelHeld, and StoreError where the ledger cannot be written."""
        futures = [self.begin(passage) for passage in passages]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def begin(self, passage: Text) -> Future[Extraction]:
        """See PaidExtractor."""
        return self._pool.submit(self._read, passage)

    def fall_back(self, passage: Text) -> Extraction:
        """What the rules read."""
        [extraction] = self._fallback.extract([passage])
        return replace(extraction, degraded=True)

    def _read(self, passage: Text) -> Extraction:
        if not passage[1].strip():
            return Extraction()
        with self._metrics.timed("gistream_extract_seconds"):
            try:
                extraction = self._combined(passage) if self._strategy == "combined" else self._staged(passage)
            except (Unreadable, ModelUnavailable) as error:
                if isinstance(error, ModelUnavailable) and not self._is_given_up(passage, error):
                    raise
                _log.warning("a passage titled %r is read by the rules for now: %s", passage[0], short(error))
                self._metrics.count("gistream_passages_degraded_total")
                extraction = self.fall_back(passage)
        self._failures.pop(passage, None)
        self._answered.pop(passage, None)
        for asked in (Memory, Names):
            self._steps.pop((passage, asked), None)
        return extraction

    def _combined(self, passage: Text) -> Extraction:
        answer = self._chat.ask(Combined, {"title": passage[0], "passage": passage[1]})
        return _extraction(answer.memory, answer.named_entities, answer.triples)

    def _staged(self, passage: Text) -> Extraction:
        memory = self._step(passage, Memory, {"title": passage[0], "passage": passage[1]}).memory
        known = memory if memory.strip() else passage[1]  # without a memory the passage is its own
        names = self._step(passage, Names, {"memory": known}).named_entities
        facts = self._chat.ask(Facts, {"memory": known, "named_entities": names})
        return _extraction(memory, names, facts.triples)

    def _step(self, passage: Text, asked: type[A], material: dict[str, Any]) -> A:
        if (passage, asked) not in self._steps:
            self._steps[passage, asked] = self._chat.ask(asked, material)
        return cast(A, self._steps[passage, asked])

    def _is_given_up(self, passage: Text, error: ModelUnavailable) -> bool:
        """Whether a passage failed again and again while others were answered; call it once a failure."""
        if is_not_of_the_passage(error):
            return False
        if self._chat.answered > self._answered.get(passage, -1):
            self._failures[passage] += 1
        self._answered[passage] = self._chat.answered
        return self._failures[passage] >= PATIENCE


def _extraction(memory: str, names: Sequence[str], triples: Sequence[Sequence[str]]) -> Extraction:
    """An answer without what has no normal form: that could be no name and no end of a fact."""
    facts = (Triple(*map(clean, triple)) for triple in triples)
    return Extraction(
        memory=memory.strip(),
        entities=tuple(dict.fromkeys(clean(name) for name in names if norm(name))),
        triples=tuple(dict.fromkeys(fact for fact in facts if norm(fact.head) and fact.relation and norm(fact.tail))),
    )


def _close(pool: ThreadPoolExecutor, spending: Spending) -> None:
    # Without waiting: the last reference may go in one of its own threads.
    pool.shutdown(wait=False, cancel_futures=True)
    spending.close()
