"""Plain text and Markdown."""

from __future__ import annotations

import pytest

from streams.feeds.formats.base import Page, Unreadable
from streams.feeds.formats.text import markdown, plain


def test_text_stands_as_it_is() -> None:
    assert plain("\ufeff # No heading\r\n\tä".encode()) == Page("", " # No heading\r\n\tä")


def test_markdown_is_called_by_its_first_heading() -> None:
    assert markdown(b"Intro\n\n```\n# no\n```\n## The Lock ##\n# Later") == Page(
        "The Lock", "Intro\n\n```\n# no\n```\n## The Lock ##\n# Later"
    )


@pytest.mark.parametrize(("data", "reason"), [(b"a\0", "binary"), (b"ab\xff", "not UTF-8 at byte 2")])
def test_what_is_no_text_is_refused(data: bytes, reason: str) -> None:
    for read in (plain, markdown):
        with pytest.raises(Unreadable, match=reason):
            read(data)
