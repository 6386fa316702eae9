"""`gistream settings`: every setting, its value, and where the value comes from."""

from __future__ import annotations

from .. import show
from ..options import Data, Json, configured


def settings(data: Data = None, json: Json = False) -> None:
    """List every setting with its value and where that comes from; secrets are masked.

    A setting is an environment variable or a line of gistream.toml. Example: GISTREAM_PORT=9000 gistream settings
    """
