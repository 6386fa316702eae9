"""Of many who make a file of one name, one does, and nobody sees half of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from index.exclusive import create, sync


def test_one_of_many_makes_it(tmp_path: Path) -> None:
    path, contents = tmp_path / "1.json", [b"%d" % number * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda content: create(path, content), contents))
    assert made.count(True) == 1
    assert path.read_bytes() == contents[made.index(True)]
    assert list(tmp_path.iterdir()) == [path]
    sync(tmp_path)


def test_what_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    assert create(path, b"first") and not create(path, b"second")
    assert path.read_bytes() == b"first"


def test_one_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        create(tmp_path / "missing" / "1.json", b"content")
    with pytest.raises(TypeError):
        create(tmp_path / "1.json", "no bytes")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
