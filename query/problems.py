"""Problem documents (RFC 9457): every error as one JSON object, under one table of statuses."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from index.errors import (
    BadRequest,
    BrokerError,
    GistreamError,
    InvalidEvent,
    ModelError,
    ModelUnavailable,
    NotFound,
    NotYet,
    SnapshotGone,
    StoreError,
    TooStale,
    Torn,
    WrongFingerprint,
)

MEDIA_TYPE: Final = "application/problem+json"
INTERNAL: Final = "internal-error"
"""Kind of what nobody foresaw."""

_log = logging.getLogger(__name__)


class ReadOnly(GistreamError):
    """This service accepts no events."""


class TooLarge(BadRequest):
    """A body exceeds what this address reads."""


class UnsupportedMediaType(BadRequest):
    """A body that does not say that it is JSON, or of another type that is read here."""


class ForeignOrigin(BadRequest):
    """A page of somewhere else had a browser send this."""


class InvalidFields(BadRequest):
    """JSON that is not what this address takes; `reasons` holds one entry for every field that is wrong."""

    def __init__(self, message: str, reasons: Sequence[Mapping[str, Any]], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons


class NotReady(GistreamError):
    """The service runs and should be sent no work."""

    recoverable = True


STATUSES: Final[Mapping[type[GistreamError], int]] = {
    GistreamError: 500,
    BadRequest: 400,
    BrokerError: 503,
    ForeignOrigin: 403,
    InvalidEvent: 422,
    InvalidFields: 422,
    ModelError: 502,
    ModelUnavailable: 503,
    NotFound: 404,
    NotReady: 503,
    NotYet: 504,
    ReadOnly: 405,
    SnapshotGone: 410,
    StoreError: 503,
    TooLarge: 413,
    TooStale: 503,
    Torn: 500,
    UnsupportedMediaType: 415,
    WrongFingerprint: 409,
}
"""The status of an error is that of its nearest ancestor here."""

_CORRECT: Final = "correct the request and send it again; GET /openapi.json says what this address takes"
_LOOK: Final = "send it again later; if it stays so, the log of the service says more"

_HEADERS: Final[Mapping[int, Mapping[str, str]]] = {405: {"Allow": "GET"}, 503: {"Retry-After": "1"}}


class Problem(BaseModel):
    """What went wrong (RFC 9457, section 3.1), and what to do about it."""

    type: str
    """Names the kind: programs decide by it."""
    title: str
    """The kind in words."""
    status: int
    detail: str
    """What happened, and to what."""
    instance: str
    """The address that was asked."""
    hint: str
    """What to do next."""
    errors: list[dict[str, Any]] | None = None
    """One entry for every document or field that was refused, where there may be several."""


def install(app: FastAPI) -> None:
    """Make every error of `app` a problem document."""
    app.add_exception_handler(GistreamError, _on_gistream_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_parameters)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.add_middleware(_LastResort)


def status_of(error: GistreamError) -> int:
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def kind_of(error: Exception) -> str:
    """The last part of a problem's type: the name of the error, like `not-yet`."""
    if not isinstance(error, GistreamError):
        return INTERNAL
    return re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()


def reasons_of(errors: Sequence[Any]) -> list[dict[str, Any]]:
    """Pydantic's errors as {field, reason}; what was sent is not repeated, it may be long or no valid Unicode."""
    return [
        {"field": ".".join(map(str, error["loc"])), "reason": error["msg"].removeprefix("Value error, ")}
        for error in errors
    ]


class _LastResort:
    """Outermost of our own layers: what nobody foresaw is logged with its traceback and told without its text."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            _log.exception("an unforeseen error while answering %s %s", scope["method"], _address(scope))
            if started:
                raise
            detail = "The service met an error that it did not foresee; its log tells which."
            problem = _document(scope, 500, INTERNAL, detail, hint="report it together with the log")
            await problem(scope, receive, send)


async def _on_gistream_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, GistreamError)
    status = status_of(error)
    if status in (500, 502, 503):
        _log.error("%s %s: %s", request.method, _address(request.scope), error)
    errors = list(error.reasons) if isinstance(error, InvalidFields) else None
    return _document(request.scope, status, kind_of(error), error.message, hint=error.hint, errors=errors)


async def _on_invalid_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    reasons = reasons_of(error.errors())
    return await _on_gistream_error(request, InvalidFields("the address has parameters that are not valid", reasons))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """What the router refuses: no such address, or not with this method."""
    assert isinstance(error, HTTPException)
    kind = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    detail = f"{request.method} {_address(request.scope)}: {error.detail}"
    response = _document(request.scope, error.status_code, kind, detail, hint="GET /openapi.json lists what there is")
    response.headers.update(error.headers or {})
    return response


async def _on_disconnect(request: Request, error: Exception) -> Response:
    """Nobody reads this; it only keeps a client that hung up from looking like a fault of ours."""
    return _document(request.scope, 400, "disconnected", "the client went away before its body had arrived")


def _document(
    scope: Scope, status: int, kind: str, detail: str, *, hint: str = "", errors: list[Any] | None = None
) -> Response:
    problem = Problem(
        type=f"urn:problem-type:gistream:{kind}",
        title=kind.replace("-", " ").capitalize(),
        status=status,
        detail=detail,
        instance=_address(scope),
        hint=hint or (_CORRECT if status < 500 else _LOOK),
        errors=errors,
    )
    # In ASCII: an id that was refused may be no valid Unicode, and is told nevertheless.
    content = json.dumps(problem.model_dump(exclude_none=True))
    return Response(content, status, headers=_HEADERS.get(status), media_type=MEDIA_TYPE)


def _address(scope: Scope) -> str:
    """The path as it was sent: percent-encoded, so it is ASCII and one line."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("ascii", "replace")
