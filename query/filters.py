"""Filters: which passages an answer may hold, by the time of their content, their metadata and their words."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from index.attributes import NO_TIME, Mask
from index.clock import to_microseconds
from index.history import parse_moment
from index.types import Text

if TYPE_CHECKING:
    # Requests are read by those as well who look at no table.
    from index.snapshot import Snapshot

Scalar = Text | int | float | bool | None
Bound = Text | int | float | None

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "above": operator.gt,
    "at_least": operator.ge,
    "below": operator.lt,
    "at_most": operator.le,
}


def _moment(value: object) -> object:
    return parse_moment(value) if isinstance(value, str) else value


Moment = Annotated[datetime, BeforeValidator(_moment)]
"""In ISO 8601; without a zone it is UTC, and a date alone is its first moment."""


class Condition(BaseModel):
    """What the metadata value of one key must be: every test that is given must hold, and one must be given.

    Where the value is a list, one element must pass all of them. Numbers compare with numbers and texts with texts (by
    code point, so dates in ISO 8601 are in order); a value of another kind does not pass.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    exists: bool = True
    """Whether the key must be there or must not; null is there."""
    equals: Scalar = None
    one_of: Annotated[tuple[Scalar, ...], Field(alias="in", strict=False)] = ()
    above: Bound = None
    at_least: Bound = None
    below: Bound = None
    at_most: Bound = None

    @model_validator(mode="after")
    def _says_something(self) -> Condition:
        if not self.model_fields_set:
            raise ValueError("give at least one of exists, equals, in, above, at_least, below, at_most")
        if not self.exists and len(self.model_fields_set) > 1:
            raise ValueError("a key that must not be there has no value to compare")
        return self

    def admits(self, metadata: Mapping[str, Any], key: str) -> bool:
        """Whether the value at `key`, or its absence, is as it must be."""
        if key not in metadata or not self.exists:
            return (key in metadata) == self.exists
        value = metadata[key]
        if self.model_fields_set == {"exists"}:
            return True
        return any(map(self._passes, value)) if isinstance(value, list) else self._passes(value)

    def _passes(self, value: object) -> bool:
        kind = _kind(value)
        if self._allowed is not None and (kind is None or (kind, value) not in self._allowed):
            return False
        return all(_kind(bound) == kind and _ORDERS[name](value, bound) for name, bound in self._bounds)

    @cached_property
    def _allowed(self) -> frozenset[tuple[str | None, Scalar]] | None:
        """Kinds and values that `equals` and `in` leave; None: any."""
        given = [
            {(_kind(value), value) for value in values}
            for name, values in (("equals", (self.equals,)), ("one_of", self.one_of))
            if name in self.model_fields_set
        ]
        return frozenset.intersection(*map(frozenset, given)) if given else None

    @cached_property
    def _bounds(self) -> list[tuple[str, Bound]]:
        return [(name, bound) for name in _ORDERS if (bound := getattr(self, name)) is not None]


class Filter(BaseModel):
    """All that is given must hold. A passage has the time and the metadata of its document."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    since: Moment | None = None
    """Only content of this event_time or later. What has no event_time is in no answer to since or until: nobody knows
    when it is true.
    """
    until: Moment | None = None
    """Only content of this event_time or earlier."""
    where: Mapping[Text, Condition] = Field(default_factory=dict)
    """Metadata key -> what its value must be."""
    phrase: Text | None = None
    """Only passages that hold these words in a row, in their title or in their text. Words are letters and digits;
    their case, and what stands between them, do not matter.
    """

    def mask(self, snapshot: Snapshot) -> Mask | None:
        """The passages that pass, by number; None where nothing is filtered. Passages that are gone mean nothing.

        Raises BadRequest for a phrase without a word, StoreError where the passages cannot be read.
        """
        masks = [mask for mask in (self._of_attributes(snapshot), self._of_phrase(snapshot)) if mask is not None]
        return np.logical_and.reduce(masks) if masks else None

    def _of_phrase(self, snapshot: Snapshot) -> Mask | None:
        if self.phrase is None:
            return None
        # Those who only read requests are spared the tables.
        from index.phrases import holders

        mask = np.zeros(len(snapshot.lengths), np.bool_)
        mask[snapshot.kinds.passages.of(holders(snapshot.dataset("passages"), self.phrase))] = True
        return mask

    def _of_attributes(self, snapshot: Snapshot) -> Mask | None:
        if self.since is None and self.until is None and not self.where:
            return None
        attributes = snapshot.attributes
        mask = np.ones(len(attributes.event_times), np.bool_)
        if self.since is not None or self.until is not None:
            mask &= attributes.event_times != NO_TIME
        if self.since is not None:
            mask &= attributes.event_times >= to_microseconds(self.since)
        if self.until is not None:
            mask &= attributes.event_times <= to_microseconds(self.until)
        if self.where:
            name = json.dumps({key: one.model_dump(exclude_unset=True) for key, one in sorted(self.where.items())})
            mask &= attributes.having(name, self._admits)
        return mask

    def _admits(self, text: str) -> bool:
        metadata = json.loads(text)
        return all(condition.admits(metadata, key) for key, condition in self.where.items())


def _kind(value: object) -> str | None:
    """What a scalar may be compared with; None for lists and objects. True is no number, as in JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
    return None
