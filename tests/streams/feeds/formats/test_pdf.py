"""PDF to title and text, and every way in which there is none."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from streams.feeds.formats.base import Page, Unreadable
from streams.feeds.formats.pdf import pages


def pdf(*texts: str, title: str = "", password: str | None = None) -> bytes:
    writer = PdfWriter()
    for text in texts:
        page = writer.add_blank_page(300, 300)
        font = DictionaryObject(
            {NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1")}
        )
        font[NameObject("/BaseFont")] = NameObject("/Helvetica")
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    if title:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_its_pages_are_paragraphs() -> None:
    assert pages(pdf("Mara Quill.", "", "The lock.", title=" The  Lock "), 1000) == Page(
        "The Lock", "Mara Quill.\n\nThe lock."
    )


@pytest.mark.parametrize("title", ["Microsoft Word - draft7.docx", "untitled", "x" * 201])
def test_a_title_that_says_nothing_is_none(title: str) -> None:
    assert pages(pdf("Text.", title=title), 1000).title == ""


def test_an_empty_password_is_no_secret() -> None:
    assert pages(pdf("Open.", password=""), 1000).text == "Open."


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf("Secret.", password="x"), "encrypted"),
        (pdf("", ""), "scan"),
        (pdf(), "scan"),
        (pdf("x" * 50, "x" * 51), "more than 100 characters"),
        (b"", "damaged"),
        (b"no PDF at all", "damaged"),
        (b"%PDF-1.7\n" + b"\0" * 100, "damaged"),
    ],
)
def test_one_without_text_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason) as raised:
        pages(data, 100)
    assert "\n" not in str(raised.value)


@given(st.integers(0, 900), st.integers(1, 60), st.binary(max_size=20))
def test_damage_is_a_reason_and_nothing_else(start: int, size: int, instead: bytes) -> None:
    data = pdf("Mara Quill.")
    try:
        pages(data[:start] + instead + data[start + size :], 1000)
    except Unreadable as error:
        assert str(error)
