"""Giving memory back: what was freed after a large piece of work goes to the system and not to the next such piece."""

from __future__ import annotations

import ctypes

import pyarrow as pa


def give_back() -> None:
    """Return freed memory of Arrow and of the C library to the system.

    Both keep what a reader freed after it was opened, which is as much again as what it holds.
    """
    pa.default_memory_pool().release_unused()
    # Of glibc alone; other C libraries give back by themselves.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
