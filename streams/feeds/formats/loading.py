"""Which format a file or a body is of: by the suffix of its name or by its media type."""

from __future__ import annotations

from typing import Final

from ...events import Limits
from .base import Page, Unreadable

SUFFIXES: Final = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".pdf": "application/pdf",
}
"""Files that are read, by the end of their names in small letters."""

MEDIA_TYPES: Final = frozenset(SUFFIXES.values())

_MARKUP_SHARE: Final = 4
"""A file whose text is within the limits may have so many times their bytes of markup, fonts and pictures."""


def most_bytes(media_type: str, limits: Limits) -> int:
    """How large a file of this type may be at all."""
    share = 1 if media_type in ("text/plain", "text/markdown") else _MARKUP_SHARE
    return share * limits.document_bytes


def load(data: bytes, media_type: str, limits: Limits, charset: str = "") -> Page:
    """Title and text of `data`. Raises Unreadable; `media_type` is one of MEDIA_TYPES."""
    if len(data) > (most := most_bytes(media_type, limits)):
        raise Unreadable(f"this has {len(data)} bytes, the limit is {most}; split it")
    match media_type:
        case "text/markdown":
            from .text import markdown

            return markdown(data)
        case "text/html":
            from .html import page

            return page(data, charset)
        case "application/pdf":
            from .pdf import pages

            return pages(data, limits.document_bytes)
        case _:
            from .text import plain

            return plain(data)
