"""HTML to title and text, by rules that can be foretold: what a page says is kept, its furniture is left out.

Which part of a page is its article could be guessed better by statistics, but a guess drops short pages and odd ones in
silence. Here `<article>` or `<main>` is taken where the page has one, else the whole body without navigation.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from .base import Page, Unreadable, one_line

_NO_TEXT: Final = "script, style, template, noscript, svg, math, iframe, object, canvas, select, button, textarea"
_FURNITURE: Final = (
    "nav, footer, aside, form, dialog, [hidden], [aria-hidden=true], [role=navigation], [role=banner], "
    "[role=contentinfo], [role=search], [role=complementary], body > header"
)
_PARAGRAPHS: Final = frozenset(
    "address article blockquote body center dd details dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 header "
    "hgroup hr main ol p pre section summary table ul".split()
)
_LINES: Final = frozenset("caption div li tbody tfoot thead tr".split())
"""Elements that end a line, where those above end a paragraph."""
_CELLS: Final = frozenset(("td", "th"))

# Breaks of elements that begin and end at the same place are one break, so they are marked first and written then.
_PARAGRAPH, _LINE = "\x02", "\x01"
_MARKS_OF_BREAKS = re.compile("[\x00-\x08]")
_PARAGRAPH_BREAKS = re.compile("[ \x01\n]*\x02[ \x01\x02\n]*")
_LINE_BREAKS = re.compile(" *\x01[ \x01]*")
_BLANKS = re.compile(r"[ \t\r\n\f]+")

_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w:-]{1,40})""", re.IGNORECASE)
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MEANT: Final = {"iso8859-1": "cp1252", "ascii": "cp1252"}
"""What browsers read where a page claims these."""


def page(data: bytes, charset: str = "") -> Page:
    """Title and main text of a page; `charset` is what its source says of it. Raises Unreadable for binary data."""
    markup = decoded(data, charset)
    if "\0" in markup:
        raise Unreadable("this is binary and no HTML")
    tree = LexborHTMLParser(markup)
    named = tree.css_first("head > title") or tree.css_first("h1")
    title = one_line(named.text()) if named is not None else ""
    body = tree.body
    if body is None:
        return Page(title, "")
    _drop(body, _NO_TEXT)
    articles = body.css("article")
    # Several articles are a page of teasers or comments, and none of them is the page.
    main = articles[0] if len(articles) == 1 else body.css_first("main, [role=main]")
    if main is not None and (text := _text(main)):
        return Page(title, text)
    whole = _text(body)
    _drop(body, _FURNITURE)
    return Page(title, _text(body) or whole)


def fragment(markup: str) -> str:
    """The text of a piece of HTML, all of it."""
    body = LexborHTMLParser(markup.replace("\0", "")).body
    if body is None:
        return ""
    _drop(body, _NO_TEXT)
    return _text(body)


def decoded(data: bytes, charset: str = "") -> str:
    """The characters of a page: its byte order mark decides, then `charset`, its own <meta>, and UTF-8 where it fits.

    >>> decoded("<p>é".encode("latin-1"))
    '<p>é'
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    found = _META_CHARSET.search(data[:4096])
    for label in (charset, found[1].decode() if found else ""):
        try:
            name = codecs.lookup(label.strip()).name if label.strip() else ""
            # A page whose <meta> could be read is no UTF-16, whatever it says.
            if name and not (name.startswith("utf-16") and found):
                return data.decode(_MEANT.get(name, name), "replace")
        except (LookupError, ValueError, UnicodeError):
            continue
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _drop(node: LexborNode, selector: str) -> None:
    for found in node.css(selector):
        found.decompose()


def _text(root: LexborNode) -> str:
    """The text below `root`, a line for each line and an empty one between paragraphs."""
    pieces: list[str] = []
    node: LexborNode | None = root
    entering, preformatted = True, 0
    while node is not None:
        tag = node.tag or ""
        if entering:
            if tag == "-text":
                words = _MARKS_OF_BREAKS.sub(" ", node.text_content or "")
                pieces.append(words if preformatted else _BLANKS.sub(" ", words))
            preformatted += tag == "pre"
            pieces.append("\n" if tag == "br" else _break(tag))
            if node.first_child is not None and tag != "-comment":
                node = node.first_child
                continue
        preformatted -= tag == "pre"
        pieces.append(_break(tag))
        if node.mem_id == root.mem_id:
            break
        entering = node.next is not None
        node = node.next if entering else node.parent
    text = _PARAGRAPH_BREAKS.sub("\n\n", "".join(pieces))
    text = _LINE_BREAKS.sub("\n", text)
    return re.sub(r"[ \t]+\n", "\n", re.sub(r"\n{3,}", "\n\n", text)).strip()


def _break(tag: str) -> str:
    if tag in _PARAGRAPHS:
        return _PARAGRAPH
    return _LINE if tag in _LINES else " " if tag in _CELLS else ""
