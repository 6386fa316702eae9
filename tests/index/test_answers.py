"""Tests of the files of answers: none that was added is lost, whatever the files and their processes went through."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.answers import Answers
from index.keys import key

KEYS = [key("text", str(number)) for number in range(6)]
steps = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(["add", "turn", "end"]), st.sampled_from(KEYS), st.text(max_size=9))
)


def all_of(answers: Answers) -> dict[bytes, str]:
    return {key: answer for page in answers.turn() for key, answer in page.answers.items()}


def page_of(folder: Path) -> Path:
    [page] = folder.iterdir()
    return page


@given(steps)
def test_each_of_two_has_what_it_added_and_what_was_left(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, bytes, str]]
) -> None:
    folder = tmp_path_factory.mktemp("answers")
    both = [Answers(folder), Answers(folder)]
    expected: list[dict[bytes, str]] = [{}, {}]
    for who, step, address, text in steps:
        if step == "add":
            both[who].add(address, text)
            expected[who].setdefault(address, text)
        elif step == "turn":
            both[who].done(both[who].turn())
            expected[who] = {}
        else:
            both[who].close()
            both[who] = Answers(folder)
        for answers, known in zip(both, expected, strict=True):
            assert answers.find(KEYS) == all_of(answers) == known
    for answers in both:
        answers.close()
    left = Answers(folder)
    assert all_of(left).keys() == expected[0].keys() | expected[1].keys()
    left.done(left.turn())
    assert not list(folder.iterdir())


def test_what_is_added_meanwhile_stays_behind(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.add(KEYS[0], "first")
    pages = answers.turn()
    answers.add(KEYS[1], "second")
    answers.done(pages)
    assert all_of(answers) == {KEYS[1]: "second"}
    answers.close()
    assert all_of(Answers(tmp_path)) == {KEYS[1]: "second"}


def test_what_is_added_after_the_end_is_there_for_the_next(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.add(KEYS[0], "first")
    pages = answers.turn()
    answers.close()
    answers.done(pages)
    answers.add(KEYS[1], "second")
    assert all_of(Answers(tmp_path)) == {KEYS[0]: "first", KEYS[1]: "second"}


@pytest.mark.parametrize("cut", range(2, 20, 3))
def test_a_line_that_was_cut_short_costs_only_itself(tmp_path: Path, cut: int) -> None:
    answers = Answers(tmp_path)
    answers.add(KEYS[0], "first")
    answers.add(KEYS[1], "second")
    answers.close()
    page_of(tmp_path).write_bytes(page_of(tmp_path).read_bytes()[:-cut])
    again = Answers(tmp_path)
    again.add(KEYS[2], "third")
    assert all_of(again) == {KEYS[0]: "first", KEYS[2]: "third"}
    again.close()
    assert all_of(Answers(tmp_path)) == {KEYS[0]: "first", KEYS[2]: "third"}


def test_a_disk_without_room_costs_only_what_was_said_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(tmp_path)
    with monkeypatch.context() as full:
        write = os.write
        full.setattr(os, "write", lambda file, data: write(file, data[: len(data) // 2]))
        with pytest.raises(OSError, match="no room"):
            answers.add(KEYS[0], "first")
    assert all_of(answers) == {}
    answers.add(KEYS[1], "second")
    answers.close()
    assert all_of(Answers(tmp_path)) == {KEYS[1]: "second"}


@pytest.mark.parametrize("line", [b"\0\0\0\n", b"[]\n", b'["zz", "x"]\n', b"{}\n", b"5\n", b"\xff\n"])
def test_a_damaged_line_costs_only_itself(tmp_path: Path, line: bytes) -> None:
    answers = Answers(tmp_path)
    answers.add(KEYS[0], "first")
    answers.close()
    page_of(tmp_path).write_bytes(line + page_of(tmp_path).read_bytes())
    assert all_of(Answers(tmp_path)) == {KEYS[0]: "first"}


def test_what_cannot_be_written_is_not_claimed(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "gone")
    (tmp_path / "gone").write_text("a file")
    with pytest.raises(OSError):
        answers.add(KEYS[0], "first")
    assert all_of(answers) == {}


def test_threads_add_side_by_side(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    many = {key("text", f"many {number}"): "x" * number for number in range(200)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(answers.add, many, many.values()))
    answers.close()
    assert all_of(Answers(tmp_path)) == many
