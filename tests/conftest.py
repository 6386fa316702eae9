"""What every test may ask for: hypothesis profiles, the evaluation kit, a Kafka, a place for the figures of a soak."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.broker.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT / "../shared/evalkit"

# A busy machine must not decide whether a test passes, so nothing has a deadline, and `make test` tries the same
# examples every time; `make soak` looks for new ones.
_QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("test", max_examples=60, deadline=None, derandomize=True, suppress_health_check=_QUIET)
settings.register_profile("soak", max_examples=3000, deadline=None, print_blob=True, suppress_health_check=_QUIET)
settings.load_profile("test")


@pytest.fixture(scope="session")
def kit() -> Path:
    """The folder of the evaluation kit; mark such a test with `kit`."""
    if not KIT.is_dir():
        pytest.skip("the evaluation kit is not beside this checkout")
    return KIT


@pytest.fixture
def soak_report(request: pytest.FixtureRequest) -> Callable[[dict[str, Any]], None]:
    """Write the figures of this soak to build/soak/<name of the test>.json."""

    def write(figures: dict[str, Any]) -> None:
        folder = ROOT / "build" / "soak"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{request.node.name}.json").write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")

    return write
