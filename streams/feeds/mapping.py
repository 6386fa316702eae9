"""A foreign record as an event: where in its JSON the parts of a document stand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from index.errors import BadRequest, InvalidEvent
from index.types import DocumentEvent

from ..events import DEFAULT_LIMITS, Limits, validated

REST: Final = "*"
"""Among the paths of metadata: all that no other path of the mapping reads."""

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Fields:
    """Paths into a JSON object, like `after.body`: names from the outermost inwards, joined by dots."""

    text: tuple[str, ...] = ("text",)
    """Of those that are there the texts are joined, an empty line between them; one must be there."""
    id: str | None = None
    """None: the record's key is the id. A tombstone, which has no fields, always means its key."""
    title: str | None = None
    version: str | None = None
    """Must be there where it is given: without it, a record would count as newer than every version."""
    event_time: str | None = None
    metadata: tuple[str, ...] = (REST,)
    """Each is a key of the document's metadata as it is written here; or REST."""
    deleted: tuple[str, str] | None = None
    """Path and value by which a record says that its document is gone; `true` is the truth as well as the text."""

    def __post_init__(self) -> None:
        """Raises BadRequest for what is no path."""
        for path in self._read():
            if not all(path.split(".")):
                raise BadRequest(f"{path!r} is no path into a record", hint="write names joined by dots: after.body")

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Self:
        """The mapping among the options of a feed, as JSON holds them. Raises BadRequest."""
        given: dict[str, Any] = {}
        for name in (one.name for one in fields(cls) if one.name in options):
            value = options[name]
            given[name] = tuple(value) if isinstance(value, list) else value
        return cls(**given)

    def event(
        self,
        key: bytes | None,
        value: bytes | None,
        namespace: str,
        *,
        prefix: str = "",
        limits: Limits = DEFAULT_LIMITS,
    ) -> DocumentEvent:
        """The event of a record, its id behind `prefix`; one without a value deletes the document of its key.

        Raises InvalidEvent, whose reason names the field and never quotes its text.
        """
        if value is None:
            return validated({"op": "delete", "namespace": namespace, "id": prefix + _key(key)}, limits)
        record = _object(value, limits)
        id = _key(key) if self.id is None else _id(record, self.id)
        said: dict[str, Any] = {"namespace": namespace, "id": prefix + id}
        if self.version is not None:
            if (version := _at(record, self.version)) is _ABSENT or version is None:
                raise InvalidEvent(_missing(self.version), hint="every record needs the version that the mapping names")
            said["version"] = version
        if self._says_deleted(record):
            return validated(said | {"op": "delete"}, limits)
        said["text"] = self._text(record)
        for name, path in (("title", self.title), ("event_time", self.event_time)):
            if path is not None and (found := _at(record, path)) is not _ABSENT and found is not None:
                said[name] = found
        return validated(said | {"metadata": self._metadata(record)}, limits)

    def _read(self) -> Iterator[str]:
        """Every path that is read, but REST."""
        for path in (self.id, *self.text, self.title, self.version, self.event_time, *self.metadata):
            if path is not None and path != REST:
                yield path
        if self.deleted is not None:
            yield self.deleted[0]

    def _says_deleted(self, record: Mapping[str, Any]) -> bool:
        if self.deleted is None:
            return False
        path, written = self.deleted
        found = _at(record, path)
        if isinstance(found, str):
            return found == written
        # Not by equality: in Python 1 is True.
        return found is not _ABSENT and json.dumps(found) == written

    def _text(self, record: Mapping[str, Any]) -> str:
        pieces = []
        for path in self.text:
            piece = _at(record, path)
            if piece is _ABSENT or piece is None:
                continue
            if not isinstance(piece, str):
                raise InvalidEvent(f"field {path!r} of the record is no text", hint="map the text to another field")
            pieces.append(piece)
        if not pieces:
            raise InvalidEvent(_missing(*self.text), hint="a document needs its text")
        return "\n\n".join(filter(None, pieces))

    def _metadata(self, record: dict[str, Any]) -> dict[str, Any]:
        chosen = {path: found for path in self.metadata if (found := _at(record, path)) is not _ABSENT}
        if REST not in self.metadata:
            return chosen
        rest = record
        for path in self._read():
            rest = _without(rest, path.split("."))
        return {name: value for name, value in rest.items() if value != {}} | chosen


def _object(value: bytes, limits: Limits) -> dict[str, Any]:
    if len(value) > limits.event_bytes:
        reason = f"a record of {len(value)} bytes; within the limits none has more than {limits.event_bytes}"
        raise InvalidEvent(reason, hint="split the document")
    try:
        record = json.loads(value.decode())
    except UnicodeDecodeError as error:
        raise InvalidEvent(f"not UTF-8 at byte {error.start}", hint="only records in JSON are read") from None
    except ValueError as error:
        raise InvalidEvent(f"not JSON: {error}", hint="only records in JSON are read") from None
    except RecursionError:
        raise InvalidEvent("JSON that is nested too deeply", hint="flatten the record") from None
    if not isinstance(record, dict):
        raise InvalidEvent("the record is no JSON object", hint="a mapping reads the fields of an object")
    return record


def _key(key: bytes | None) -> str:
    if key is None:
        raise InvalidEvent("a record without a key", hint="name the field of its id with --id")
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        hint = "name the field of its id with --id"
        raise InvalidEvent(f"the record's key is not UTF-8 at byte {error.start}", hint=hint) from None


def _id(record: Mapping[str, Any], path: str) -> str:
    match _at(record, path):
        case str(text):
            return text
        case int(number) if not isinstance(number, bool):
            return str(number)
        case found:
            reason = _missing(path) if found is _ABSENT else f"field {path!r} of the record is no id"
            raise InvalidEvent(reason, hint="an id is a text or a whole number")


def _at(record: Mapping[str, Any], path: str) -> Any:
    """What stands at a path, or _ABSENT."""
    found: Any = record
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return _ABSENT
        found = found[name]
    return found


def _without(record: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The record but for what stands at a path; the record itself stays as it is."""
    first, *inner = names
    if first not in record:
        return record
    if not inner:
        return {name: value for name, value in record.items() if name != first}
    if not isinstance(record[first], dict):
        return record
    return record | {first: _without(record[first], inner)}


def _missing(*paths: str) -> str:
    return f"the record has no field {' or '.join(map(repr, paths))}"
