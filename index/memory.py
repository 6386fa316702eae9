"""Holding little memory: what was freed goes to the system, and does not lie about in many places until then."""

from __future__ import annotations

import ctypes

_ARENAS = 2
_M_ARENA_MAX = -8
"""Of glibc's malloc.h."""


def keep_few_arenas() -> None:
    """Let the C library keep two stores of freed memory; to be called before there are threads.

    It keeps eight for each processor otherwise, and what the threads of a store free lies fallow in all of them: a
    fifth of what a reader of 100,000 passages holds.
    """
    # Of glibc alone; other C libraries have no such stores.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return freed memory of Arrow and of the C library to the system.

    Both keep what a reader freed after it was opened, which is as much again as what it holds.
    """
    # Not before: a command that only looks at the log does not pay for it.
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    # Of glibc alone; other C libraries give back by themselves.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
