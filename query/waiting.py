"""Waiting for a write to become visible, without holding a thread for it."""

from __future__ import annotations

import asyncio
import time

from index.errors import NotFound, NotYet
from index.token import Token

from .readers import Readers

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05
"""Seconds between two looks; most writes are visible after a few."""


async def until_visible(readers: Readers, name: str, token: Token, seconds: float) -> None:
    """Return once the snapshot held of a namespace reflects `token`; raise NotYet after `seconds`.

    A namespace that does not exist yet may be made by the very write that is waited for.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            # The loop's own few threads: however many questions wait, those that can be answered find theirs free.
            manifest = (await asyncio.to_thread(readers.refresh, name)).manifest
            state = f"snapshot {manifest.number} of namespace {name} is at {manifest.positions.get(token.source, 0)}"
            if manifest.positions.get(token.source, 0) >= token.position:
                return
        except NotFound as missing:
            state = missing.message
        if (left := deadline - time.monotonic()) <= 0:
            hint = "ask again; if it stays so, see whether the token is of this namespace, and GET /health/ready"
            raise NotYet(f"{token} is not visible after {seconds:g} s: {state}", hint=hint)
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)
