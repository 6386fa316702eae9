"""Feeds: laws that all of them keep, then what is particular to each."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import NotFound
from index.types import DocumentEvent
from streams.events import Limits
from streams.feeds.base import MAX_PAYLOAD, Feed, Rejected
from streams.feeds.directory import Directory
from streams.feeds.jsonl import JsonLines

SMALL = Limits(document_bytes=1000, metadata_bytes=100)
Items = Sequence[tuple[str, str | None]]
"""Names with their texts; None stands for an item that is broken beyond reading."""


def lines(folder: Path, items: Items) -> Feed:
    file = folder / "events.jsonl"
    rows = [
        b'{"id": "\xff"}' if text is None else json.dumps({"id": name, "text": text}).encode() for name, text in items
    ]
    file.write_bytes(b"\n".join(rows))
    return JsonLines(file, "news", limits=SMALL)


def piped_lines(folder: Path, items: Items) -> Feed:
    lines(folder, items)
    return JsonLines(io.BytesIO((folder / "events.jsonl").read_bytes()), "news", limits=SMALL)


def files(folder: Path, items: Items) -> Feed:
    for name, text in items:
        (folder / name).write_bytes(b"\xff" if text is None else text.encode())
    return Directory(folder, "news", limits=SMALL)


FEEDS: list[Callable[[Path, Items], Feed]] = [lines, piped_lines, files]


@pytest.mark.parametrize("build", FEEDS)
class TestEveryFeed:
    def test_yields_every_document_of_its_namespace(self, build: Callable[[Path, Items], Feed], tmp_path: Path) -> None:
        feed = build(tmp_path, [("a.txt", "One."), ("b.txt", ""), ("c.md", "Drei: äöü 日本.")])
        read = list(feed.read())
        assert [(item.id, item.text) for item in read if isinstance(item, DocumentEvent)] == [
            ("a.txt", "One."),
            ("b.txt", ""),
            ("c.md", "Drei: äöü 日本."),
        ]
        assert {item.namespace for item in read if isinstance(item, DocumentEvent)} == {"news"}

    def test_goes_on_behind_a_flaw(self, build: Callable[[Path, Items], Feed], tmp_path: Path) -> None:
        feed = build(tmp_path, [("a.txt", "One."), ("b.txt", None), ("c.txt", "x" * 1001), ("d.txt", "Four.")])
        first, broken, large, last = feed.read()
        assert isinstance(first, DocumentEvent)
        assert isinstance(broken, Rejected)
        assert isinstance(large, Rejected)
        assert isinstance(last, DocumentEvent)
        assert "UTF-8" in broken.reason
        assert b"\xff" in broken.payload
        for item in (broken, large):
            assert item.source == feed.name
            assert item.place
            assert item.reason
            assert "\n" not in item.reason
            assert "xxx" not in item.reason

    def test_an_empty_source_yields_nothing(self, build: Callable[[Path, Items], Feed], tmp_path: Path) -> None:
        assert [*build(tmp_path, []).read()] == []


class TestJsonLines:
    def read(self, data: bytes, limits: Limits = SMALL) -> list[DocumentEvent | Rejected]:
        return list(JsonLines(io.BytesIO(data), "notes", name="pipe", limits=limits).read())

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
        (flaw,) = JsonLines(stream, "notes", limits=SMALL).read()  # type: ignore[arg-type]
        assert isinstance(flaw, Rejected)
        assert len(flaw.payload) == MAX_PAYLOAD
        assert 0 < stream.largest <= SMALL.event_bytes + 1

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound, match=r"missing\.jsonl: No such file"):
            list(JsonLines(tmp_path / "missing.jsonl", "notes").read())


class TestDirectory:
    def read(self, root: Path) -> dict[str, DocumentEvent | Rejected]:
        feed = Directory(root, "notes", limits=SMALL)
        return {item.id if isinstance(item, DocumentEvent) else item.place: item for item in feed.read()}

    def test_a_file_is_a_document(self, tmp_path: Path) -> None:
        (tmp_path / "travel" / "2024").mkdir(parents=True)
        file = tmp_path / "travel" / "2024" / "Wien.MD"
        file.write_bytes(b"\xef\xbb\xbfIntro\n\n```\n# no heading\n```\n\n## In Wien ##\n\nText.\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        assert self.read(tmp_path) == {
            "travel/2024/Wien.MD": DocumentEvent(
                namespace="notes",
                id="travel/2024/Wien.MD",
                title="In Wien",
                text="Intro\n\n```\n# no heading\n```\n\n## In Wien ##\n\nText.\n",
                metadata={"folder": "travel/2024"},
                event_time=datetime.fromtimestamp(1_700_000_000, UTC),
            )
        }

    @pytest.mark.parametrize(
        ("name", "text", "title"),
        [
            ("a.txt", "# Not Markdown", "a"),
            ("a.md", "no heading", "a"),
            ("a.md", "#hashtag\n# C#", "C#"),
            ("a.md", "# ##\n###### Sixth   ######", "Sixth"),
            ("a.md", "~~~\n# in the fence\n```\n# still\n~~~~\n# After", "After"),
            ("a.md", f"# {'x' * 201}\n# Short", "Short"),
            ("a.md", f"# {' ' * 900}y", "y"),
        ],
    )
    def test_its_title(self, tmp_path: Path, name: str, text: str, title: str) -> None:
        (tmp_path / name).write_text(text)
        event = self.read(tmp_path)[name]
        assert isinstance(event, DocumentEvent)
        assert event.title == title

    def test_what_is_skipped(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / "folder.txt").mkdir()
        for name in (".hidden.txt", ".git/a.txt", "picture.png", "README"):
            (tmp_path / name).write_text("x")
        (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
        (tmp_path / "loop.txt").symlink_to(tmp_path, target_is_directory=True)
        assert self.read(tmp_path) == {}

    def test_links(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        root.mkdir()
        (tmp_path / "outside.txt").write_text("secret")
        (root / "real.txt").write_text("Real.")
        (root / "inside.txt").symlink_to("real.txt")
        (root / "escape.txt").symlink_to("../outside.txt")
        (root / "circle.txt").symlink_to("circle.txt")
        (root / "broken.txt").symlink_to("nowhere")
        read = self.read(root)
        inside, escape = read["inside.txt"], read["escape.txt"]
        assert isinstance(inside, DocumentEvent)
        assert inside.text == "Real."
        assert isinstance(escape, Rejected)
        assert "out of the folder" in escape.reason
        assert escape.payload == b""
        assert isinstance(read["circle.txt"], Rejected)
        assert isinstance(read["broken.txt"], Rejected)

    def test_what_is_no_text_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "binary.txt").write_bytes(b"a\0b")
        (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
        (tmp_path / "large.txt").write_bytes(b"x" * 1001)
        os.mkfifo(tmp_path / "pipe.txt")
        (tmp_path / os.fsdecode(b"\xff.txt")).write_text("x")
        reasons = {name: item.reason for name, item in self.read(tmp_path).items() if isinstance(item, Rejected)}
        assert set(reasons) == {"binary.txt", "latin.txt", "large.txt", "pipe.txt", r"\xff.txt"}
        assert "binary" in reasons["binary.txt"]
        assert "not UTF-8 at byte 0" in reasons["latin.txt"]
        assert "1001 bytes, the limit is 1000" in reasons["large.txt"]
        assert "no regular file" in reasons["pipe.txt"]
        assert "field 'id'" in reasons[r"\xff.txt"]

    def test_the_order_is_fixed(self, tmp_path: Path) -> None:
        (tmp_path / "b" / "d").mkdir(parents=True)
        (tmp_path / "a").mkdir()
        for name in ("b/2.txt", "b/d/0.txt", "b/1.txt", "a/z.txt", "c.txt", "0.md"):
            (tmp_path / name).write_text("x")
        assert [*self.read(tmp_path)] == ["0.md", "c.txt", "a/z.txt", "b/1.txt", "b/2.txt", "b/d/0.txt"]

    def test_a_missing_folder_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound, match=r"there is no folder .*nowhere"):
            list(Directory(tmp_path / "nowhere", "notes").read())
