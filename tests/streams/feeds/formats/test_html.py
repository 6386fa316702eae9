"""Pages to title and text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.feeds.formats.base import Page, Unreadable
from streams.feeds.formats.html import decoded, fragment, page


def test_an_article_is_taken_and_the_furniture_left() -> None:
    markup = b"""<!doctype html><html><head><title>The  Lock
    &amp; the Quay</title><style>p {}</style></head><body><header>Site</header><nav>Home</nav>
    <article><header><h1>The Lock</h1></header><p>Mara <b>Quill</b>
    repaired it.</p></article><aside>Also read</aside><script>var x</script><footer>Imprint</footer></body></html>"""
    assert page(markup) == Page("The Lock & the Quay", "The Lock\n\nMara Quill repaired it.")


def test_several_articles_are_all_kept() -> None:
    markup = b"<nav>Menu</nav><article>One.</article><article>Two.</article>"
    assert page(markup).text == "One.\n\nTwo."


def test_a_page_that_is_all_furniture_keeps_its_text() -> None:
    assert page(b"<form>Everything is in a form.</form>").text == "Everything is in a form."
    assert page(b"<main></main><p>Outside.").text == "Outside."


def test_paragraphs_lists_tables_and_code() -> None:
    markup = b"<p>One<br>two<br><br>three<ul><li>a</li><li>b</li></ul><table><tr><td>1</td></tr><tr><td>2</td></tr>"
    assert page(markup).text == "One\ntwo\n\nthree\n\na\nb\n\n1\n2"
    assert page(b"<pre>if x:\n    y  z\n</pre><div>c</div><div>d</div>").text == "if x:\n    y  z\n\nc\nd"


@pytest.mark.parametrize("markup", [b"", b"   ", b"<html></html>", b"<!-- nothing -->"])
def test_a_page_without_text(markup: bytes) -> None:
    assert page(markup) == Page("", "")


def test_a_page_without_title_is_called_by_its_heading() -> None:
    assert page(b"<h1>The Lock</h1><p>x").title == "The Lock"
    assert page(f"<title>{'x' * 201}</title>".encode()).title == ""


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("Größe €".encode(), ""),
        ("\ufeffGröße €".encode(), "latin-1"),
        ("\ufeffGröße €".encode("utf-16"), ""),
        (b"<meta charset=windows-1252>" + "Größe €".encode("cp1252"), ""),
        ("Größe €".encode("cp1252"), ""),
        ("Größe €".encode("cp1252"), "ISO-8859-1"),
        ("Größe €".encode(), "no-such-thing"),
        (b'<meta charset="utf-16">' + "Größe €".encode(), ""),
    ],
)
def test_its_letters(data: bytes, charset: str) -> None:
    assert decoded(data, charset).removeprefix("\ufeff").endswith("Größe €")


def test_binary_data_is_refused() -> None:
    with pytest.raises(Unreadable, match="no HTML"):
        page(b"\x89PNG\0\0")


def test_depth_does_not_matter() -> None:
    assert page(b"<div>" * 5000 + b"deep").text == "deep"


@given(st.lists(st.sampled_from(["<p>", "</p>", "<b>", "</div>", "<div>", "<pre>", "<td>", "&amp;", "a", " ", "\x01"])))
def test_every_letter_outside_of_tags_is_kept(pieces: list[str]) -> None:
    text = fragment("".join(pieces))
    assert text.count("a") == pieces.count("a")
    assert text.count("&") == pieces.count("&amp;")
    assert "\x01" not in text and "\x02" not in text
    assert text == text.strip()
