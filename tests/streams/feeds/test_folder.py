"""A folder: what is a document of it, and what came, changed, moved and went."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from errno import EIO
from pathlib import Path
from typing import NoReturn

import pytest

from index.errors import FeedError, NotFound
from index.types import DocumentEvent
from streams.events import Limits
from streams.feeds.base import Memory, Rejected, Step
from streams.feeds.files import read
from streams.feeds.folder import Folder
from tests.support import wait_until


def look(folder: Folder, memory: Memory) -> list[Step]:
    """One look, with all of it learnt; steps without consequence left out."""
    steps = list(folder.poll(memory))
    for step in steps:
        memory.learn(step)
    return [step for step in steps if step.events or step.rejected]


def said(steps: Sequence[Step]) -> list[list[tuple[str, str]]]:
    return [[(event.op, event.id) for event in step.events] for step in steps]


class TestWhatIsADocument:
    def read(self, root: Path) -> dict[str, DocumentEvent | Rejected]:
        steps = look(Folder(root, "notes", limits=Limits(1000, 100)), Memory())
        items: list[DocumentEvent | Rejected] = []
        for step in steps:
            items += [*step.events, *step.rejected]
        return {item.id if isinstance(item, DocumentEvent) else item.place: item for item in items}

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
        feed = Folder(tmp_path, "notes")
        assert look(feed, Memory()) == []
        assert feed.skipped == {".png": 1, "no suffix": 1}

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
            look(Folder(tmp_path / "nowhere", "notes"), Memory())


class TestWhatHappened:
    """One folder over time; `settle_seconds` is 0 unless a test is about it."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "root"
        root.mkdir()
        return root

    @pytest.fixture
    def memory(self) -> Memory:
        return Memory()

    def test_a_new_name_is_one_step_that_never_leaves_a_gap(self, root: Path, memory: Memory) -> None:
        (root / "a.txt").write_text("Anna.")
        look(Folder(root, "notes"), memory)
        (root / "a.txt").rename(root / "b.txt")
        assert said(look(Folder(root, "notes"), memory)) == [[("upsert", "b.txt"), ("delete", "a.txt")]]
        assert look(Folder(root, "notes"), memory) == []

    def test_a_folder_with_a_new_name_moves_its_files_one_by_one(self, root: Path, memory: Memory) -> None:
        (root / "old").mkdir()
        for name in ("a.txt", "b.txt", "twin.txt"):
            (root / "old" / name).write_text("same" if name != "a.txt" else "other")
        look(Folder(root, "notes"), memory)
        (root / "old").rename(root / "new")
        steps = said(look(Folder(root, "notes"), memory))
        assert [[op for op, _ in step] for step in steps] == [["upsert", "delete"]] * 3
        assert {id for step in steps for op, id in step if op == "delete"} == {"old/a.txt", "old/b.txt", "old/twin.txt"}
        assert {id for id in memory.items if not id.endswith("/")} == {"new/a.txt", "new/b.txt", "new/twin.txt"}

    def test_two_that_swap_names(self, root: Path, memory: Memory) -> None:
        (root / "a.txt").write_text("Anna.")
        (root / "b.txt").write_text("Bert.")
        look(Folder(root, "notes"), memory)
        (root / "a.txt").rename(root / "c")
        (root / "b.txt").rename(root / "a.txt")
        (root / "c").rename(root / "b.txt")
        events = [event for step in look(Folder(root, "notes"), memory) for event in step.events]
        assert {event.id: event.text for event in events} == {"a.txt": "Bert.", "b.txt": "Anna."}

    def test_a_touched_file_is_no_event(self, root: Path, memory: Memory) -> None:
        (root / "a.txt").write_text("Anna.")
        look(Folder(root, "notes"), memory)
        os.utime(root / "a.txt", (1, 1))
        assert look(Folder(root, "notes"), memory) == []

    def test_a_change_that_keeps_size_and_time_is_seen(self, root: Path, memory: Memory) -> None:
        file = root / "a.txt"
        file.write_text("Anna.")
        os.utime(file, (1, 1))
        look(Folder(root, "notes"), memory)
        file.write_text("Bert.")
        os.utime(file, (1, 1))
        [step] = look(Folder(root, "notes"), memory)
        assert step.events[0].text == "Bert."

    def test_a_file_that_is_no_text_any_more_loses_its_document(self, root: Path, memory: Memory) -> None:
        (root / "a.txt").write_text("Anna.")
        look(Folder(root, "notes"), memory)
        (root / "a.txt").write_bytes(b"\0\1")
        [step] = look(Folder(root, "notes"), memory)
        assert [event.op for event in step.events] == ["delete"]
        assert "binary" in step.rejected[0].reason
        assert look(Folder(root, "notes"), memory) == []
        (root / "a.txt").unlink()
        assert look(Folder(root, "notes"), memory) == []
        assert memory.items == {}

    def test_a_link_whose_target_went_loses_its_document(self, root: Path, memory: Memory) -> None:
        (root / "a.txt").write_text("Anna.")
        (root / "link.txt").symlink_to("a.txt")
        look(Folder(root, "notes"), memory)
        (root / "a.txt").unlink()
        events = [event for step in look(Folder(root, "notes"), memory) for event in step.events]
        assert {(event.op, event.id) for event in events} == {("delete", "a.txt"), ("delete", "link.txt")}

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_that_may_not_be_read_keeps_its_document_and_is_tried_again(
        self, root: Path, memory: Memory
    ) -> None:
        file = root / "a.txt"
        file.write_text("Anna.")
        look(Folder(root, "notes"), memory)
        file.write_text("Bert.")
        file.chmod(0)
        [step] = look(Folder(root, "notes"), memory)
        assert step.events == ()
        assert "Permission denied" in step.rejected[0].reason
        assert look(Folder(root, "notes"), memory) == []
        file.chmod(0o600)
        [step] = look(Folder(root, "notes"), memory)
        assert step.events[0].text == "Bert."

    def test_a_file_that_cannot_be_read_keeps_its_document_and_is_tried_again(
        self, root: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (root / "a.txt").write_text("Anna.")
        look(Folder(root, "notes"), memory)
        (root / "a.txt").write_text("Bert.")
        with monkeypatch.context() as broken:
            broken.setattr("streams.feeds.files.os.fstat", _fails)
            [step] = look(Folder(root, "notes"), memory)
            assert step.events == ()
            assert "Input/output error" in step.rejected[0].reason
            assert look(Folder(root, "notes"), memory) == []
        [step] = look(Folder(root, "notes"), memory)
        assert step.events[0].text == "Bert."

    def test_a_folder_that_cannot_be_listed_deletes_nothing(
        self, root: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (root / "sub").mkdir()
        (root / "sub" / "a.txt").write_text("Anna.")
        (root / "b.txt").write_text("Bert.")
        look(Folder(root, "notes"), memory)
        (root / "b.txt").unlink()
        listed = os.scandir
        with monkeypatch.context() as broken:
            broken.setattr(
                "streams.feeds.walk.os.scandir", lambda path: _fails() if path.name == "sub" else listed(path)
            )
            steps = look(Folder(root, "notes"), memory)
            assert said(steps) == [[], [("delete", "b.txt")]]
            assert steps[0].rejected[0].place == "sub"
            assert look(Folder(root, "notes"), memory) == []
        assert look(Folder(root, "notes"), memory) == []
        assert [*memory.items] == ["sub/a.txt"]

    def test_a_folder_that_is_missing_or_not_mounted_deletes_nothing(self, root: Path, memory: Memory) -> None:
        (root / "a.txt").write_text("Anna.")
        look(Folder(root, "notes"), memory)
        root.rename(root.with_name("elsewhere"))
        with pytest.raises(NotFound):
            look(Folder(root, "notes"), memory)
        root.mkdir()
        with pytest.raises(FeedError, match="not the one that was read before"):
            look(Folder(root, "notes"), memory)
        root.rmdir()
        root.with_name("elsewhere").rename(root)
        assert look(Folder(root, "notes"), memory) == []

    def test_emptied_it_is_empty(self, root: Path, memory: Memory) -> None:
        (root / "a.txt").write_text("Anna.")
        look(Folder(root, "notes"), memory)
        (root / "a.txt").unlink()
        assert said(look(Folder(root, "notes"), memory)) == [[("delete", "a.txt")]]

    def test_a_prefix_keeps_two_folders_apart(self, root: Path, memory: Memory) -> None:
        (root / "a.txt").write_text("Anna.")
        feed = Folder(root, "notes", prefix="mine/")
        assert said(look(feed, memory)) == [[("upsert", "mine/a.txt")]]
        (root / "a.txt").rename(root / "b.txt")
        assert said(look(feed, memory)) == [[("upsert", "mine/b.txt"), ("delete", "mine/a.txt")]]

    def test_a_document_that_may_have_been_sent_is_deleted_where_its_file_is_gone(
        self, root: Path, memory: Memory
    ) -> None:
        memory.items["a.txt"] = ""
        assert said(look(Folder(root, "notes"), memory)) == [[("delete", "a.txt")]]


class TestSettling:
    """What is being written is left alone."""

    def test_a_file_is_read_when_it_has_been_the_same_for_a_while(self, tmp_path: Path) -> None:
        memory, feed = Memory(), Folder(tmp_path, "notes", settle_seconds=0.2)
        (tmp_path / "a.txt").write_text("An")
        assert look(feed, memory) == []
        (tmp_path / "a.txt").write_text("Anna.")
        assert look(feed, memory) == []
        found: list[Step] = []

        def settled() -> bool:
            found.extend(look(feed, memory))
            return bool(found)

        wait_until(settled, what="reading the file")
        assert [event.text for step in found for event in step.events] == ["Anna."]

    def test_a_file_that_is_written_to_while_it_is_read_is_left_for_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.txt").write_text("Anna.")
        memory, feed = Memory(), Folder(tmp_path, "notes", settle_seconds=1e-6)
        with monkeypatch.context() as patched:
            patched.setattr("streams.feeds.folder.read", lambda *rest: read(*rest)._replace(is_whole=False))
            assert look(feed, memory) == []
        wait_until(lambda: look(feed, memory) != [], what="reading the file")

    def test_a_file_that_is_replaced_by_deleting_it_first_is_never_deleted(self, tmp_path: Path) -> None:
        memory, feed = Memory(), Folder(tmp_path, "notes", settle_seconds=30)
        (tmp_path / "a.txt").write_text("Anna.")
        look(Folder(tmp_path, "notes"), memory)
        (tmp_path / "a.txt").unlink()
        assert look(feed, memory) == []
        (tmp_path / "a.txt").write_text("Anna.")
        assert look(feed, memory) == []
        assert [*memory.items] == ["a.txt"]

    def test_a_new_name_need_not_settle(self, tmp_path: Path) -> None:
        memory, feed = Memory(), Folder(tmp_path, "notes", settle_seconds=30)
        (tmp_path / "a.txt").write_text("Anna.")
        look(Folder(tmp_path, "notes"), memory)
        (tmp_path / "a.txt").rename(tmp_path / "b.txt")
        assert said(look(feed, memory)) == [[("upsert", "b.txt"), ("delete", "a.txt")]]


def _fails(*_: object) -> NoReturn:
    raise OSError(EIO, "Input/output error")
