"""One question to a model and one answer in the form asked for: within the budget, on the books, and counted."""

from __future__ import annotations

import time
import weakref
from typing import Any, Final, TypeVar

from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAI, OpenAIError
from openai.types.chat import ChatCompletion
from pydantic import ValidationError

from index.errors import ModelError, ModelUnavailable
from index.metrics import Metrics

from . import failures
from .failures import Unreadable, short
from .prompts import Answer, messages, response_format
from .spending import Outcome, Spending, Usage

ATTEMPTS: Final = 3
"""Calls for one answer before a model that answers in another form is given up on a passage."""
CHARACTERS_PER_TOKEN: Final = 2
"""Fewer than usual texts have, so that what is reserved for a call is not too little."""

A = TypeVar("A", bound=Answer)


class Chat:
    """A model behind an endpoint. Safe for threads."""

    def __init__(
        self,
        model: str,
        spending: Spending,
        metrics: Metrics,
        *,
        base_url: str | None,
        api_key: str,
        timeout: float,
        max_retries: int,
        most_tokens: int,
    ) -> None:
        """See OpenAIExtractor."""
        self.answered = 0
        """Answers that were as they should be."""
        self._model = model
        self._spending = spending
        self._metrics = metrics
        self._most_tokens = most_tokens
        self._max_retries = max_retries
        self._client = OpenAI(base_url=base_url, api_key=api_key, timeout=timeout, max_retries=max_retries)
        # The client closes itself too late where the collector takes its sockets first.
        weakref.finalize(self, self._client.close)

    def ask(self, asked: type[A], material: dict[str, Any]) -> A:
        """An answer of that form about `material`; blocks for the calls and their retries.

        Raises Unreadable where the model gives none, ModelUnavailable and ModelMisset where it cannot be asked, and
        BudgetSpent before anything is sent that the budget does not hold.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._call(asked, material)
            except Unreadable as error:
                if error.outcome != "garbage" or attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _call(self, asked: type[A], material: dict[str, Any]) -> A:
        question = messages(asked, material)
        sent = sum(len(message["content"]) for message in question) // CHARACTERS_PER_TOKEN
        most = Usage(sent, self._most_tokens)
        call = self._spending.reserve(most)
        # What nobody foresaw counts as dear as it can be.
        outcome: Outcome = "lost"
        usage = most
        started = time.perf_counter()
        try:
            reply = self._send(question, asked)
            usage = _usage(reply, most)
            answer = _answer(reply, asked)
            outcome = "answered"
            self.answered += 1
            return answer
        except (Unreadable, ModelError) as error:
            outcome = failures.outcome_of(error)
            if isinstance(error.__cause__, APIConnectionError | APIStatusError):
                # Whether an endpoint bills what it was too slow to answer, nobody knows.
                usage = most if isinstance(error.__cause__, APITimeoutError) else Usage()
            raise
        finally:
            cost = self._spending.settle(call, outcome, usage)
            self._count(outcome, usage, cost, time.perf_counter() - started)

    def _send(self, question: list[dict[str, str]], asked: type[Answer]) -> ChatCompletion:
        where = f"{self._client.base_url} (model {self._model!r})"
        # Built as the protocol says and not as the client's types: these are unions of what no form of ours uses.
        body: Any = {
            "model": self._model,
            "messages": question,
            "response_format": response_format(asked),
            "temperature": 0,
            "max_completion_tokens": self._most_tokens,
        }
        try:
            raw = self._client.chat.completions.with_raw_response.create(**body)
            self._metrics.count("gistream_model_retries_total", raw.retries_taken)
            reply: ChatCompletion = raw.parse()
            if isinstance(reply.choices[0].message.content, str | None):
                return reply
            raise TypeError("its content is no text")
        except (APIConnectionError, APIStatusError) as error:
            failure = failures.of_call(error, where, has_answered=self.answered > 0)
            if isinstance(failure, ModelUnavailable):
                self._metrics.count("gistream_model_retries_total", self._max_retries)
            raise failure from error
        except (OpenAIError, ValueError, TypeError, AttributeError, IndexError) as error:
            # The client checks no answer against its own types: what is no completion fails in any of these ways.
            told = f"the model's endpoint {where} answered with no completion: {short(error)}"
            raise Unreadable("garbage", told) if self.answered else failures.not_understood(told) from error

    def _count(self, outcome: Outcome, usage: Usage, cost: float, seconds: float) -> None:
        metrics = self._metrics
        metrics.count("gistream_model_calls_total", outcome=outcome)
        metrics.count("gistream_model_tokens_total", usage.input, direction="input")
        metrics.count("gistream_model_tokens_total", usage.output, direction="output")
        metrics.count("gistream_model_cost_usd_total", cost)
        metrics.observe("gistream_model_call_seconds", seconds)


def _usage(reply: ChatCompletion, most: Usage) -> Usage:
    """What the endpoint says it took; where it says nothing, what the texts must have taken."""
    if reply.usage is not None:
        return Usage(int(reply.usage.prompt_tokens), int(reply.usage.completion_tokens))
    return Usage(most.input, len(reply.choices[0].message.content or "") // CHARACTERS_PER_TOKEN)


def _answer(reply: ChatCompletion, asked: type[A]) -> A:
    """The answer in a reply. Raises Unreadable where there is none."""
    choice = reply.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise Unreadable("refused", f"the model refused: {choice.message.refusal or 'its content filter stepped in'}")
    if choice.finish_reason == "length":
        raise Unreadable("truncated", "the model's answer was cut off; see GISTREAM_EXTRACTOR_MOST_TOKENS")
    try:
        return asked.model_validate_json(choice.message.content or "")
    except ValidationError as error:
        raise Unreadable("garbage", f"the model's answer has another form: {short(error)}") from error
