"""Waiting for what was accepted to become visible, without holding a thread for it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping

from index.errors import BadRequest, NotFound, NotYet, TooStale
from index.manifest import Manifest
from index.token import Token

from .readers import Readers

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05
"""Seconds between two looks; most writes are visible after a few."""

Staleness = Callable[[str, Mapping[str, int]], float | None]
"""Namespace and positions of a snapshot -> age in seconds of the oldest accepted event that it does not reflect.

0 where it reflects all of them, None where no log is at hand that knows. It may say more than is true, never less, and
`inf` where that is not known yet.
"""


async def until_visible(readers: Readers, name: str, token: Token, seconds: float) -> None:
    """Return once the snapshot held of a namespace reflects `token`; raise NotYet after `seconds`.

    A namespace that does not exist yet may be made by the very write that is waited for.
    """

    def lacks(manifest: Manifest | NotFound, _: float) -> str | None:
        if isinstance(manifest, NotFound):
            return manifest.message
        reached = manifest.positions.get(token.source)
        if reached is not None and reached >= token.position:
            return None
        seen = "reflects no event of its source" if reached is None else f"is at {reached}"
        return f"snapshot {manifest.number} of namespace {name} {seen}"

    if (state := await _waited(readers, name, lacks, seconds)) is not None:
        hint = "ask again; if it stays so, see whether the token is of this namespace, and GET /health/ready"
        raise NotYet(f"{token} is not visible after {seconds:g} s: {state}", hint=hint)


async def until_fresh(readers: Readers, staleness: Staleness, name: str, most: float, seconds: float) -> None:
    """Return once the snapshot held of a namespace reflects every event accepted `most` seconds before the call or
    earlier; raise TooStale after `seconds`, NotFound where no event is to make the namespace, BadRequest where nobody
    knows what was accepted.
    """

    def lacks(manifest: Manifest | NotFound, elapsed: float) -> str | None:
        age = staleness(name, {} if isinstance(manifest, NotFound) else manifest.positions)
        if age is None:
            hint = "leave max_staleness out, or ask the service that writes"
            raise BadRequest(f"nobody here knows how stale namespace {name} is: there is no log", hint=hint)
        if isinstance(manifest, NotFound):
            # Nothing that was accepted before the question is to make it.
            if age <= elapsed:
                raise manifest
            return manifest.message
        # What comes while it waits is not waited for: that might never end.
        if age <= most + elapsed:
            return None
        if math.isinf(age):
            return f"it is not known yet what snapshot {manifest.number} of namespace {name} lacks"
        return f"snapshot {manifest.number} of namespace {name} lacks an event that was accepted {age:.1f} s ago"

    if (state := await _waited(readers, name, lacks, seconds)) is not None:
        hint = "ask again, or allow more; if it stays so, see GET /health/ready"
        raise TooStale(f"{state}, and {most:g} s are allowed", hint=hint)


async def _waited(
    readers: Readers, name: str, lacks: Callable[[Manifest | NotFound, float], str | None], seconds: float
) -> str | None:
    """Look until the newest manifest lacks nothing; what it lacks after `seconds`. `lacks` is told the time since, and
    of a namespace that is not there the error.
    """
    started = time.monotonic()
    pause = _FIRST_PAUSE

    def look() -> str | None:
        newest: Manifest | NotFound
        try:
            newest = readers.refresh(name).manifest
        except NotFound as missing:
            newest = missing
        return lacks(newest, time.monotonic() - started)

    while True:
        # The loop's own few threads: however many questions wait, those that can be answered find theirs free.
        if (state := await asyncio.to_thread(look)) is None:
            return None
        if (left := started + seconds - time.monotonic()) <= 0:
            return state
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)
