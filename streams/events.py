"""Events on the wire: bytes to a DocumentEvent that keeps every rule, and back.

Whatever comes in, a feed, an HTTP body or a Kafka record, passes through `decode`. So an event that got this far can be
stored, and one that did not carries a reason of one line that names its document and field and never quotes its text.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from index.errors import InvalidEvent
from index.types import DocumentEvent, Metadata

MAX_METADATA_DEPTH: Final = 16
"""Nested objects and lists in metadata, the outermost included."""

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_INT64: Final = 2**63
_LONGEST_ESCAPE: Final = 6
"""Bytes of the longest JSON spelling of one byte of UTF-8 (a control character written with its number)."""
_SHOWN: Final = 80
"""Characters of a name that a reason quotes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large one event may be, in bytes of UTF-8."""

    document_bytes: int = 16 * 2**20
    """Title and text together."""
    metadata_bytes: int = 64 * 2**10
    """The canonical JSON of the metadata."""

    @property
    def event_bytes(self) -> int:
        """What no acceptable event exceeds as JSON, however it is escaped; a reader may stop there."""
        return _LONGEST_ESCAPE * (self.document_bytes + self.metadata_bytes) + 2**16


DEFAULT_LIMITS: Final = Limits()


def decode(data: bytes | str, limits: Limits = DEFAULT_LIMITS, default_namespace: str | None = None) -> DocumentEvent:
    """The event written in `data`, a JSON object in UTF-8; without `namespace` it belongs to `default_namespace`.

    Raises InvalidEvent when it is not one, breaks a rule of DocumentEvent or exceeds `limits`.
    """
    if len(data) > limits.event_bytes:
        reason = f"an event of {len(data)} bytes; within the limits none has more than {limits.event_bytes}"
        raise InvalidEvent(reason, hint="split the document")
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated.append(max(counts, key=counts.__getitem__))
        return fields

    try:
        fields = json.loads(data.decode() if isinstance(data, bytes) else data, object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise InvalidEvent(f"not UTF-8 at byte {error.start}", hint="write the event as JSON in UTF-8") from None
    except ValueError as error:
        raise InvalidEvent(f"not JSON: {error}", hint="an event is one JSON object") from None
    except RecursionError:
        raise InvalidEvent("not an event: its JSON is nested too deeply", hint="flatten its metadata") from None
    if not isinstance(fields, dict):
        raise InvalidEvent(f"not an event: a JSON {_json_type(fields)}", hint="an event is one JSON object")
    if default_namespace is not None:
        fields.setdefault("namespace", default_namespace)
    if repeated:
        raise _invalid(
            fields, f"the key {_quoted(repeated[0])} stands there twice", hint="only one of them can be meant"
        )
    return validated(fields, limits)


def validated(fields: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS) -> DocumentEvent:
    """The event with these fields, as JSON gives them. Raises InvalidEvent as `decode` does."""
    if (version := fields.get("v", 1)) != 1 or type(version) is not int:
        raise _invalid(
            fields, f"field 'v': {_quoted(version)} is no known version of events", hint="this gistream reads 1"
        )
    moment = fields.get("event_time")
    if isinstance(moment, int | float) or (isinstance(moment, str) and not _ISO_DATE.match(moment)):
        # Whether a bare number counts seconds or milliseconds would be a guess.
        raise _invalid(fields, "field 'event_time': not a date", hint="write it as ISO 8601, like 2024-05-31T18:00:00Z")
    try:
        event = DocumentEvent.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _invalid(fields, f"field {_quoted(place)}: {first['msg'].removeprefix('Value error, ')}") from None
    except OverflowError:
        raise _invalid(fields, "field 'event_time': outside the years 1 to 9999 in UTC") from None
    _check_metadata(fields, event.metadata)
    document_size = len(event.title.encode()) + len(event.text.encode())
    if document_size > limits.document_bytes:
        reason = f"title and text have {document_size} bytes, the limit is {limits.document_bytes}"
        raise _invalid(fields, reason, hint="split the document")
    metadata_size = len(canonical_metadata(event.metadata).encode())
    if metadata_size > limits.metadata_bytes:
        reason = f"field 'metadata': {metadata_size} bytes, the limit is {limits.metadata_bytes}"
        raise _invalid(fields, reason, hint="keep there only what questions filter by")
    return event


def encode(event: DocumentEvent) -> bytes:
    """`event` as canonical JSON in UTF-8, defaults left out: equal events give equal bytes, and `decode` inverts it.

    Raises InvalidEvent when its metadata cannot be written as JSON.
    """
    fields: dict[str, Any] = {"v": event.v, "op": event.op, "namespace": event.namespace, "id": event.id}
    optional = {"version": event.version, "title": event.title, "text": event.text, "metadata": event.metadata}
    fields |= {name: value for name, value in optional.items() if value not in (None, "", {})}
    if event.event_time is not None:
        fields["event_time"] = event.event_time.isoformat()
    try:
        return _canonical(fields).encode()
    except (TypeError, ValueError) as error:
        raise InvalidEvent(
            f"document {event.namespace}/{event.id} cannot be written as JSON: {error}",
            hint="metadata holds texts, finite numbers, true, false, null, lists and objects",
        ) from error


def canonical_metadata(metadata: Metadata) -> str:
    """Metadata as JSON with sorted keys and no blanks: equal metadata is equal text."""
    return _canonical(metadata)


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _check_metadata(fields: Mapping[str, Any], metadata: Metadata) -> None:
    """Refuse what JSON, a table or a filter could not hold: NaN, integers beyond 64 bits, odd keys, great depth."""
    waiting: list[tuple[str, Any, int]] = [("metadata", metadata, 1)]
    while waiting:
        place, value, depth = waiting.pop()
        flaw = _flaw(value, depth)
        if flaw:
            raise _invalid(fields, f"field {_quoted(place)}: {flaw}")
        if isinstance(value, Mapping):
            for name, member in value.items():
                if not isinstance(name, str) or not _encodable(name):
                    raise _invalid(fields, f"field {_quoted(place)}: the key {_quoted(name)} is no valid text")
                waiting.append((f"{place}.{name}", member, depth + 1))
        elif isinstance(value, list | tuple):
            waiting.extend((f"{place}.{number}", member, depth + 1) for number, member in enumerate(value))


def _flaw(value: object, depth: int) -> str:
    match value:
        case str():
            return "" if _encodable(value) else "not valid Unicode (a lone surrogate)"
        case bool() | None:
            return ""
        case int():
            return "" if -_INT64 <= value < _INT64 else "an integer beyond 64 bits"
        case float():
            return "" if math.isfinite(value) else f"{value} is no number of JSON"
        case Mapping() | list() | tuple():
            return "" if depth <= MAX_METADATA_DEPTH else f"nested deeper than {MAX_METADATA_DEPTH}"
    return f"a {type(value).__name__} is no value of JSON"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _invalid(fields: Mapping[str, Any], reason: str, *, hint: str = "") -> InvalidEvent:
    namespace, document = fields.get("namespace"), fields.get("id")
    if document is None:
        return InvalidEvent(f"a document without id: {reason}", hint=hint)
    return InvalidEvent(f"document {_quoted(document)} of namespace {_quoted(namespace)}: {reason}", hint=hint)


def _quoted(name: object) -> str:
    """A name as one short line of ASCII-safe text; control characters and lone surrogates show as escapes."""
    shown = repr(name)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def _json_type(value: object) -> str:
    names = {str: "string", list: "array", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
