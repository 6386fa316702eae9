"""Helpers that several tests share."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
GISTREAM: Final = (sys.executable, "-c", "from deploy.cli import main; main()")
"""The command, as it runs in a process of its own; its arguments follow."""


def variables(**settings: object) -> dict[str, str]:
    """Settings as the environment gives them."""
    return {f"GISTREAM_{name.upper()}": str(value) for name, value in settings.items()}


def environment(**settings: object) -> dict[str, str]:
    """That of this process, with these settings and no others, for the code of this checkout."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("GISTREAM_")}
    return others | {"PYTHONPATH": str(ROOT)} | variables(**settings)


def wait_until(condition: Callable[[], bool], *, timeout: float = 10.0, what: str = "the condition") -> None:
    """Return as soon as `condition` holds; fail with `what` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"{what} did not hold within {timeout} s")
        # What is waited for needs the processor more than whoever waits.
        time.sleep(max(0.005, 5 * (now - asked)))


def without_tool(what: str) -> NoReturn:
    """Skip the test, since `what` is not installed; where CI runs it fails, for there it must be."""
    told = f"{what} is not installed: make tools"
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)
