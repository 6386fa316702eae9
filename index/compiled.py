"""`compiled`: the one way a numeric kernel becomes machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(kernel: F) -> F:
    """Compile `kernel` with numba at its first call and cache the code beside its module.

    It runs without the interpreter lock, so readers in other threads go on, and without fast-math, so floating sums
    keep their order. The cache of a kernel is renewed when its own file changes, not when a kernel that it calls from
    another module does: after such an edit delete `__pycache__`.
    """
    return cast(F, njit(cache=True, nogil=True)(kernel))
