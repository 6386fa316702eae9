"""JSON lines: from a pipe, a file, and a file that grows."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import NotFound
from index.types import DocumentEvent
from streams.events import Limits
from streams.feeds.base import MAX_PAYLOAD, Memory, Rejected
from streams.feeds.jsonl import JsonLines

from .sources import SMALL


def items(feed: JsonLines, memory: Memory | None = None) -> list[DocumentEvent | Rejected]:
    """What one look brings, learnt."""
    memory = Memory() if memory is None else memory
    steps = list(feed.poll(memory))
    for step in steps:
        memory.learn(step)
    found: list[DocumentEvent | Rejected] = []
    for step in steps:
        found += [*step.events, *step.rejected]
    return found


class TestJsonLines:
    def read(self, data: bytes, limits: Limits = SMALL) -> list[DocumentEvent | Rejected]:
        return items(JsonLines(io.BytesIO(data), "notes", name="pipe", limits=limits))

    def test_blank_lines_a_byte_order_mark_and_a_missing_end_do_not_matter(self) -> None:
        read = self.read(b'\xef\xbb\xbf{"id": "1"}\r\n\n   \n{"id": "2", "namespace": "other", "op": "delete"}')
        assert read == [
            DocumentEvent(namespace="notes", id="1"),
            DocumentEvent(namespace="other", id="2", op="delete"),
        ]

    def test_a_flaw_carries_its_line(self) -> None:
        _, flaw = self.read(b'\n{"id": "1"}\n{"id": 7}\n')
        assert flaw == Rejected("pipe", "line 3", flaw.reason, b'{"id": 7}') if isinstance(flaw, Rejected) else False

    @given(st.integers(-3, 3), st.integers(0, 2), st.booleans())
    def test_a_line_around_the_limit_never_shifts_the_next(self, over: int, pieces: int, ends: bool) -> None:
        limits = Limits(document_bytes=10, metadata_bytes=10)
        size = limits.event_bytes + over + pieces * MAX_PAYLOAD
        data = b"[" * size + (b'\n{"id": "1"}' if ends else b"")
        flaw, *rest = self.read(data, limits)
        assert isinstance(flaw, Rejected)
        assert flaw.place == "line 1"
        assert len(flaw.payload) <= limits.event_bytes
        assert rest == ([DocumentEvent(namespace="notes", id="1")] if ends else [])

    def test_a_huge_line_is_never_held(self) -> None:
        class LongLine(io.RawIOBase):
            """A line far longer than the limits that counts how it is read."""

            largest, left = 0, 50  # the most bytes asked for at once, and the pieces still to hand out

            def readline(self, size: int | None = -1, /) -> bytes:
                assert size is not None
                self.largest = max(self.largest, size)
                self.left -= 1
                return b"x" * size if self.left >= 0 else b""

        stream = LongLine()
        (flaw,) = items(JsonLines(stream, "notes", limits=SMALL))  # type: ignore[arg-type]
        assert isinstance(flaw, Rejected)
        assert len(flaw.payload) == MAX_PAYLOAD
        assert 0 < stream.largest <= SMALL.event_bytes + 1

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound, match=r"missing\.jsonl: No such file"):
            items(JsonLines(tmp_path / "missing.jsonl", "notes"))


class TestAFileThatGrows:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / "events.jsonl"
        file.write_text('{"id": "1"}\n{"id": "2"}\n')
        return file

    def ids(self, file: Path, memory: Memory) -> list[str]:
        found = items(JsonLines(file, "notes", limits=SMALL, grows=True), memory)
        return [item.id if isinstance(item, DocumentEvent) else item.place for item in found]

    def test_only_what_was_added_is_new_and_lines_go_on_counting(self, file: Path) -> None:
        memory = Memory()
        assert self.ids(file, memory) == ["1", "2"]
        with file.open("a") as more:
            more.write('\n{"id": "3"}\nbroken\n')
        assert self.ids(file, memory) == ["3", "line 5"]
        assert self.ids(file, memory) == []

    def test_a_line_without_its_end_waits_for_it(self, file: Path) -> None:
        memory = Memory()
        with file.open("a") as more:
            more.write('{"id": "3"')
        assert self.ids(file, memory) == ["1", "2"]
        with file.open("a") as more:
            more.write(', "text": "Anna."}\n')
        assert self.ids(file, memory) == ["3"]

    def test_a_file_written_anew_is_read_from_its_start(self, file: Path) -> None:
        memory = Memory()
        self.ids(file, memory)
        file.write_text('{"id": "8"}\n{"id": "9"}\n{"id": "10"}\n')
        assert self.ids(file, memory) == ["8", "9", "10"]
        file.write_text('{"id": "8"}\n')
        assert self.ids(file, memory) == ["8"]

    @given(cuts=st.lists(st.integers(0, 3000), max_size=6), size=st.integers(1, 120))
    def test_wherever_it_was_looked_at_every_line_comes_once(self, file: Path, cuts: list[int], size: int) -> None:
        lines = [f'{{"id": "{number}", "text": "{"x" * (number % 40)}"}}\n' for number in range(size)]
        data = "".join(lines).encode()
        memory, found = Memory(), []
        for end in (*sorted(cuts), len(data)):
            file.write_bytes(data[:end])
            found += self.ids(file, memory)
        assert found == [str(number) for number in range(size)]
