"""Sizes of tables at which another way of searching them begins."""

from typing import Final

EXACT_MAX: Final = 600_000
"""Rows of a table up to which its vectors are held in memory and all compared; see holding.py."""
WORDS_ABOVE: Final = 5_000
"""Passages above which phrases are found through a full text index; fewer are read through."""
