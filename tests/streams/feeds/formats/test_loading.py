"""Which format a file is of, and how large it may be."""

from __future__ import annotations

import pytest

from streams.events import Limits
from streams.feeds.formats.base import Unreadable
from streams.feeds.formats.loading import MEDIA_TYPES, SUFFIXES, load, most_bytes

SMALL = Limits(document_bytes=100, metadata_bytes=100)


def test_every_type_has_a_suffix_and_is_loaded() -> None:
    assert set(SUFFIXES.values()) == MEDIA_TYPES
    for media_type in MEDIA_TYPES - {"application/pdf"}:
        assert load(b"Anna.", media_type, SMALL).text == "Anna."
    with pytest.raises(Unreadable, match="damaged"):
        load(b"Anna.", "application/pdf", SMALL)


def test_markup_may_be_larger_than_text() -> None:
    assert most_bytes("text/plain", SMALL) == 100
    assert load(b"<p>Anna." + b"<i></i>" * 50, "text/html", SMALL).text == "Anna."
    for media_type in MEDIA_TYPES:
        with pytest.raises(Unreadable, match="split it"):
            load(b"x" * (most_bytes(media_type, SMALL) + 1), media_type, SMALL)
