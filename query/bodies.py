"""Bodies and addresses of requests: bounded while they are read, and refused where they do not say one thing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from email.message import EmailMessage
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from fastapi import Depends, Path, Request
from starlette.convertors import Convertor, register_url_convertor

from index.errors import BadRequest
from index.types import DocumentEvent

from .problems import ForeignOrigin, TooLarge, UnsupportedMediaType

MAX_WRITE_BYTES: Final = 64 * 2**20
PUSHABLE: Final = (
    "text/plain",
    "text/markdown",
    "text/html",
    "application/pdf",
    "application/json",
    "application/jsonl",
    "application/x-jsonlines",
    "application/x-ndjson",
)
"""Media types of what may be pushed."""
MAX_QUESTION_BYTES: Final = 2**18
"""A question has at most 20,000 characters, each of which has at most twelve bytes in JSON."""


class PushedBody(NamedTuple):
    """A body with what its sender declares of it."""

    data: bytes
    media_type: str
    charset: str


class _Rest(Convertor[str]):
    """The rest of a path, line ends included: Starlette's own `path` drops them, and so takes one id for another."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("rest", _Rest())


async def _written(request: Request) -> bytes:
    return await _read(request, MAX_WRITE_BYTES)


async def _pushed(request: Request) -> PushedBody:
    declared = EmailMessage()
    declared["content-type"] = request.headers.get("content-type", "")
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        # Unlike JSON, a web page may have a browser send text to this address without asking first.
        hint = "send it from a program, or from a page of this address"
        raise ForeignOrigin(f"a page of {origin[:200]} may not send documents", hint=hint)
    body = await _read(request, MAX_WRITE_BYTES, PUSHABLE)
    return PushedBody(body, declared.get_content_type(), declared.get_content_charset() or "")


async def _asked(request: Request) -> bytes:
    return await _read(request, MAX_QUESTION_BYTES)


async def _document_id(request: Request, id: Annotated[str, Path()]) -> str:
    """The document id in the path. Servers put U+FFFD for bytes that are no UTF-8: two documents would become one."""
    try:
        unquote_to_bytes(request.scope["raw_path"]).decode()
    except UnicodeDecodeError as error:
        hint = "percent-encode the UTF-8 of the id"
        raise BadRequest(f"the address is no UTF-8 at byte {error.start}", hint=hint) from None
    return id


PushBody = Annotated[PushedBody, Depends(_pushed)]
WriteBody = Annotated[bytes, Depends(_written)]
QuestionBody = Annotated[bytes, Depends(_asked)]
PathId = Annotated[str, Depends(_document_id)]


def parsed(data: bytes) -> Any:
    """The JSON value in `data`. Raises BadRequest where it is not UTF-8, not JSON, or has a key twice in one object."""
    try:
        return json.loads(data.decode(), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8 at byte {error.start}", hint="send JSON in UTF-8") from None
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}", hint="send one JSON value") from None
    except RecursionError:
        raise BadRequest("the body is nested too deeply", hint="flatten its metadata") from None


def described(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The request body of an operation in the OpenAPI document; endpoints parse it themselves, in their threads."""
    whole = _inlined({name: part for name, part in schema.items() if name != "$defs"}, schema.get("$defs", {}))
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": whole}}}}


def event_schema(*elsewhere: str) -> dict[str, Any]:
    """JSON schema of a DocumentEvent without the fields that the address gives."""
    schema = DocumentEvent.model_json_schema()
    for name in elsewhere:
        del schema["properties"][name]
    required = [name for name in schema.pop("required") if name not in elsewhere]
    return schema | ({"required": required} if required else {})


def _inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema with its (not recursive) definitions where they are used: in the document it is not at the root."""
    match node:
        case {"$ref": str(reference)}:
            return _inlined(definitions[reference.removeprefix("#/$defs/")], definitions)
        case dict():
            return {name: _inlined(part, definitions) for name, part in node.items()}
        case list():
            return [_inlined(part, definitions) for part in node]
    return node


async def _read(request: Request, limit: int, accepted: Collection[str] = ("application/json",)) -> bytes:
    """Raises UnsupportedMediaType and TooLarge; never holds more than `limit` bytes and one chunk."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in accepted:
        # A web page may have a browser send other types than JSON to this address without asking first.
        named = "not JSON" if len(accepted) == 1 else "none that is read here"
        hint = f"send the header Content-Type: {' or '.join(accepted)}"
        raise UnsupportedMediaType(f"the body is {media_type or 'of no declared type'} and {named}", hint=hint)
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body has more than {limit} bytes", hint="send the documents in several requests")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice[:80]!r} stands there twice in one object")
    return fields
