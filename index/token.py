"""Tokens: what a write is answered with, and what a question may wait for."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from .errors import BadRequest

_PATTERN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._~-]{0,255}):(0|[1-9][0-9]{0,17})", re.ASCII)


class Token(NamedTuple):
    """The place of an event among all that one source has accepted; written `log:1007`, or `documents-3:1007`.

    A snapshot whose manifest has positions {"log": 1007} or more reflects it: see Manifest.positions.
    """

    source: str
    """The log, or a partition of a topic."""
    position: int
    """In the log from 1; in a partition the offset, from 0."""

    @classmethod
    def parse(cls, written: str) -> Self:
        """The token that is `written` so. Raises BadRequest for anything else."""
        if (match := _PATTERN.fullmatch(written)) is None:
            shown = repr(written[:40])
            raise BadRequest(f"{shown} is no token", hint="pass the token of a write as it was answered, like log:1007")
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.source}:{self.position}"
