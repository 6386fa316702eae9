"""Plain text and Markdown in UTF-8."""

from __future__ import annotations

import re

from .base import Page, Unreadable, one_line

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def plain(data: bytes) -> Page:
    """The text as it stands, without title. Raises Unreadable for what is no UTF-8 text."""
    if b"\0" in data:
        raise Unreadable("this is binary or UTF-16; save it as UTF-8 text")
    try:
        return Page("", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unreadable(f"this is not UTF-8 at byte {error.start}; save it as UTF-8 text") from None


def markdown(data: bytes) -> Page:
    """The text as it stands; its title is the first heading outside of code fences. Raises Unreadable as `plain`."""
    text = plain(data).text
    fence = ""
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (heading := _HEADING.fullmatch(line)):
            title = heading[1].rstrip()
            opening, _, last = title.rpartition(" ")
            if not last.strip("#"):  # Markdown lets a heading end in marks that do not belong to it.
                title = opening.rstrip()
            if title := one_line(title):
                return Page(title, text)
    return Page("", text)
