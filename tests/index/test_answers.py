"""Tests of the file of answers: none that was added is lost, whatever the file went through."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.answers import Answers
from index.keys import key

KEYS = [key("text", str(number)) for number in range(6)]
steps = st.lists(st.tuples(st.sampled_from(["add", "remove", "reopen"]), st.sampled_from(KEYS), st.text(max_size=9)))


@given(steps)
def test_it_is_a_dictionary_that_outlives_its_process(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bytes, str]]
) -> None:
    path = tmp_path_factory.mktemp("answers") / "answers"
    answers, expected = Answers(path), dict[bytes, str]()
    for step, address, text in steps:
        if step == "add":
            answers.add(address, text)
            expected.setdefault(address, text)
        elif step == "remove" and address in expected:
            answers.remove([address])
            del expected[address]
        elif step == "reopen":
            answers = Answers(path)
        assert answers.all() == expected
    assert Answers(path).find(KEYS) == expected


@pytest.mark.parametrize("cut", range(2, 20, 3))
def test_a_line_that_was_cut_short_costs_only_itself(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "answers"
    answers = Answers(path)
    answers.add(KEYS[0], "first")
    answers.add(KEYS[1], "second")
    path.write_bytes(path.read_bytes()[:-cut])
    again = Answers(path)
    again.add(KEYS[2], "third")
    left = {KEYS[0]: "first", KEYS[2]: "third"}
    assert Answers(path).all() == left == again.all()


@pytest.mark.parametrize("line", [b"\0\0\0\n", b"[]\n", b'["zz", "x"]\n', b"{}\n", b"5\n", b"\xff\n"])
def test_a_damaged_line_costs_only_itself(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "answers"
    Answers(path).add(KEYS[0], "first")
    path.write_bytes(line + path.read_bytes())
    assert Answers(path).all() == {KEYS[0]: "first"}


def test_what_cannot_be_written_is_not_claimed(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "gone" / "answers")
    with pytest.raises(OSError):
        answers.add(KEYS[0], "first")
    assert answers.all() == {}


def test_threads_add_side_by_side(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "answers")
    many = {key("text", f"many {number}"): "x" * number for number in range(200)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(answers.add, many, many.values()))
    assert Answers(tmp_path / "answers").all() == many
