"""Why a call of a model failed, and whose fault it is: the endpoint's, the settings', or that of one passage."""

from __future__ import annotations

from typing import Final

from openai import APIConnectionError, APIStatusError, APITimeoutError, RateLimitError

from index.errors import ModelError, ModelMisset, ModelUnavailable

from .spending import Outcome

_ONE_PASSAGE: Final = frozenset(
    """
    context_length_exceeded string_above_max_length content_filter content_policy_violation invalid_prompt
    """.split()
)
"""Codes of a refused request that blame what was asked about."""
_TOO_MUCH: Final = (413, 422)
_REFUSED: Final = 400
_MISSET: Final = {
    401: "Check OPENAI_API_KEY",
    403: "Check OPENAI_API_KEY and what it may use",
    404: "Check GISTREAM_EXTRACTOR_BASE_URL (it ends in /v1) and GISTREAM_EXTRACTOR_MODEL",
}


class Unreadable(Exception):
    """The model cannot read this passage, though it may read others; asking at once again does not help."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


def of_call(error: APIConnectionError | APIStatusError, where: str, *, has_answered: bool) -> ModelError | Unreadable:
    """What the client raised after its retries, as an error of ours.

    `has_answered`: whether the endpoint ever answered as it should. A request that it does not understand is the fault
    of the settings until it has, and of the passage afterwards.
    """
    if isinstance(error, APIConnectionError):
        said = "did not answer in time" if isinstance(error, APITimeoutError) else "cannot be reached"
        return ModelUnavailable(
            f"the model's endpoint {where} {said}: {short(error)}",
            hint="Check that it runs and that GISTREAM_EXTRACTOR_BASE_URL points to it; it is tried again by itself",
        )
    told = f"the model's endpoint {where} answered {short(error)}"
    if error.status_code in _MISSET:
        return ModelMisset(told, hint=_MISSET[error.status_code])
    if error.status_code in _TOO_MUCH or error.code in _ONE_PASSAGE:
        return Unreadable("refused", told)
    if error.status_code == _REFUSED:
        return Unreadable("refused", told) if has_answered else not_understood(told)
    return ModelUnavailable(told, hint="It is tried again by itself; where this stays, lower the concurrency")


def not_understood(told: str) -> ModelMisset:
    """An endpoint that never answered as it should does not know what it is asked."""
    return ModelMisset(told, hint="Does it know chat completions with a JSON schema? Check the extractor_ settings")


def is_not_of_the_passage(error: ModelUnavailable) -> bool:
    """Whether a call certainly failed for what it had nothing to do with: too many at once, or no connection."""
    cause = error.__cause__
    unreached = isinstance(cause, APIConnectionError) and not isinstance(cause, APITimeoutError)
    return unreached or isinstance(cause, RateLimitError)


def outcome_of(error: ModelError | Unreadable) -> Outcome:
    if isinstance(error, Unreadable):
        return error.outcome
    return "misset" if isinstance(error, ModelMisset) else "unavailable"


def short(error: Exception) -> str:
    """A message on one line."""
    return " ".join(str(error).split())[:300]
