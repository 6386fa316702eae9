"""The HTTP service: one FastAPI application over the parts it is handed."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Response

from index.metrics import CONTENT_TYPE

from . import problems, pushes, reads, writes
from .parts import Parts, PartsOf
from .problems import MEDIA_TYPE, NotReady, Problem
from .schema import Health

DESCRIPTION = """
Documents go in, and within seconds questions are answered from them. A write is answered with a token as soon as it
is durable; a question may wait for the token. Every answer comes from one snapshot and says which, how new it is and
whether it lags behind what was accepted. Every error is a problem document (RFC 9457) with a hint.
"""

_PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem document (RFC 9457)",
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    }
}

_router = APIRouter(tags=["operating"])


def create_app(parts: Parts) -> FastAPI:
    """The application. Whoever made the parts starts and closes them; requests of the blocking kind run in threads."""
    app = FastAPI(
        title="gistream",
        version="1",
        summary="A streaming, incremental index for retrieval and agent memory",
        description=DESCRIPTION,
        # An id may end in a slash: sent to the same path without it, the request would mean another document.
        redirect_slashes=False,
        responses=_PROBLEM,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.parts = parts
    problems.install(app)
    for router in (writes.router, pushes.router, reads.router, _router):
        app.include_router(router)
    return app


@_router.get("/health/live")
async def health_live() -> Health:
    """The process answers; nothing else is looked at."""
    return Health(status="live")


@_router.get("/health/ready")
def health_ready(parts: PartsOf) -> Health:
    """Whether work should be sent here; 503 says why not."""
    if (reason := parts.not_ready()) is not None:
        raise NotReady(
            reason, hint="writes are still stored and old snapshots still answered where the log and disk allow"
        )
    return Health(status="ready")


@_router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def show_metrics(parts: PartsOf) -> Response:
    """Everything that is counted and timed, as Prometheus reads it."""
    return Response(parts.metrics.render(), media_type=CONTENT_TYPE)
