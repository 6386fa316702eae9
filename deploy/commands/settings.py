"""`gistream settings`: every setting, its value, and where the value comes from."""

from __future__ import annotations

from .. import show
from ..options import Json


def settings(json: Json = False) -> None:
    """List every setting with its value and where that comes from; secrets are masked.

    A setting is an environment variable, or a line of gistream.toml (or of the file that GISTREAM_CONFIG names).
    Example: GISTREAM_PORT=9000 gistream settings
    """
    from ..settings import explain

    found = [setting._asdict() for setting in explain()]
    if json:
        show.as_json({"settings": found})
    else:
        columns = ["variable", "value", "source", "description"]
        show.as_table(columns, [[setting[column] for column in columns] for setting in found], empty="no settings")
