"""What a question may be, and what is assumed where it does not say."""

from __future__ import annotations

from typing import Final

DEFAULT_MODE: Final = "fused"
DEFAULT_K: Final = 10
"""Passages."""
MAX_K: Final = 200
MAX_QUESTION: Final = 20_000
"""Characters; longer texts are documents, and their place is in the index."""
