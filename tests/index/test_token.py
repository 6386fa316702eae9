"""Tokens are written one way, and nothing else is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import BadRequest
from index.token import Token


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,20}", fullmatch=True), st.integers(0, 10**18 - 1))
def test_a_token_comes_back_from_what_it_is_written_as(source: str, position: int) -> None:
    token = Token(source, position)
    assert Token.parse(str(token)) == token
    assert str(token) == f"{source}:{position}"


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            ":",
            "log",
            "log:",
            ":7",
            "7",
            "documents-3:00",
            "log:-1",
            "log:07",
            "log:7 ",
            "log:7\n",
            "-log:7",
            "lög:7",
            "log:7:8",
            "log:٣",
        ),
        *("log:" + 19 * "9", "\ud800", 10_000 * "x"),
    ],
)
def test_anything_else_is_refused_in_one_short_line(written: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Token.parse(written)
    assert len(str(refused.value).encode()) < 400
    assert "\n" not in str(refused.value)


@given(st.text())
def test_whatever_is_read_is_written_the_same(written: str) -> None:
    try:
        token = Token.parse(written)
    except BadRequest:
        return
    assert str(token) == written
