"""Conditions on metadata as they are typed: `lang=en`, `year>=1990`, `reviewed`."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from index.errors import BadRequest

if TYPE_CHECKING:
    from query.filters import Condition

_WRITTEN: Final = re.compile(r"([^=<>]+)(?:(>=|<=|=|>|<)(.*))?", re.DOTALL)
_BOUNDS: Final = {">": "above", ">=": "at_least", "<": "below", "<=": "at_most"}


def conditions(written: Sequence[str]) -> dict[str, Condition]:
    """Metadata keys with what their values must be, as Filter takes them.

    Several values of one key are alternatives. What looks like a number, true, false or null means that as well as the
    text. Raises BadRequest for what is no condition, and for one that says the same thing twice.
    """
    from query.filters import Condition

    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for text in written:
        match = _WRITTEN.fullmatch(text)
        if match is None:
            hint = "write KEY=VALUE, KEY>=VALUE, KEY<=VALUE, KEY>VALUE, KEY<VALUE, or KEY alone where it must be there"
            raise BadRequest(f"{text[:80]!r} is no condition on metadata", hint=hint)
        key, sign, value = match.groups()
        given = found[key]
        if sign is None:
            given["exists"] = True
        elif sign == "=":
            given["one_of"] = (*given.get("one_of", ()), *_meanings(value))
        elif _BOUNDS[sign] in given:
            raise BadRequest(f"metadata {key!r} has two bounds of the kind {sign}", hint="give the stricter one")
        else:
            given[_BOUNDS[sign]] = next((one for one in _meanings(value) if type(one) in (int, float)), value)
    return {key: Condition(**given) for key, given in found.items()}


def _meanings(value: str) -> list[Any]:
    try:
        meant = json.loads(value)
    except (ValueError, RecursionError):
        return [value]
    return [value, meant] if meant is None or isinstance(meant, bool | int | float) else [value]
