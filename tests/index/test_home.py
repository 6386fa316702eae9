"""Tests of the data folder: names, incarnations, and tombstones that outlive them."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from index.errors import NotFound, StoreError, Torn
from index.home import Home
from index.lock import OPEN_LOCK, WriterLock, alone


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def born(home: Home, name: str) -> Path:
    folder = home.fresh(name)
    home.point(name, folder, after=home.latest(name))
    return folder


def test_a_namespace_exists_once_it_is_pointed_to(home: Home) -> None:
    assert home.names() == []
    folder = home.fresh("notes")
    assert home.names() == [] and home.pointer("notes") is None
    home.point("notes", folder, after=home.latest("notes"))
    assert home.names() == ["notes"]
    assert home.incarnation("notes") == folder
    born(home, "0.a-b_c")
    assert home.names() == ["0.a-b_c", "notes"]


def test_what_was_never_or_cannot_be_is_not_found(home: Home) -> None:
    for name in ("nobody", "", "Upper", "../escape", "a/b", ".hidden", "a" * 64):
        with pytest.raises(NotFound):
            home.incarnation(name)


def test_strange_things_in_the_folder_are_not_namespaces(home: Home) -> None:
    born(home, "notes")
    (home.data / "namespaces" / "lost+found").mkdir()
    (home.data / "namespaces" / "readme").write_text("a file")
    (home.data / "namespaces" / "notes" / "pointers" / ".draft").write_text("")
    assert home.names() == ["notes"]


def test_a_successor_takes_the_place_in_one_step(home: Home) -> None:
    first, second = born(home, "notes"), home.fresh("notes")
    assert home.incarnation("notes") == first
    home.point("notes", second, after=home.latest("notes"))
    assert home.incarnation("notes") == second
    assert first.exists(), "readers may still hold it"


def test_a_deleted_namespace_keeps_its_positions_through_its_rebirth(home: Home) -> None:
    folder = born(home, "notes")
    (folder / "file").write_text("text")
    home.bury("notes", {"log": 7})
    assert home.names() == []
    assert not folder.exists()
    pointer = home.pointer("notes")
    assert pointer is not None and pointer.deleted and pointer.positions == {"log": 7}
    with pytest.raises(NotFound):
        home.incarnation("notes")
    with pytest.raises(NotFound):
        home.bury("notes", {"log": 8})

    again = home.fresh("notes")
    home.point("notes", again, positions={"log": 7}, after=home.latest("notes"))
    pointer = home.pointer("notes")
    assert pointer is not None and not pointer.deleted and pointer.positions == {"log": 7}
    assert home.incarnation("notes") == again != folder


def test_an_understanding_is_no_namespace_and_no_incarnation(home: Home) -> None:
    understanding = home.understanding("notes")
    with alone(understanding / OPEN_LOCK):
        pass
    assert home.known() == [] and home.names() == [] and home.pointer("notes") is None
    assert home.sweep("notes", grace=0) == 0
    born(home, "notes")
    assert home.known() == home.names() == ["notes"] and home.unnamed("notes") == []
    assert home.sweep("notes", grace=0) == 0 and understanding.exists()


def test_an_understanding_goes_with_its_namespace(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    born(home, "notes")
    understanding = home.understanding("notes")
    with alone(understanding / OPEN_LOCK):
        pass
    (understanding / "table").write_text("what was said")
    rmtree = shutil.rmtree

    def killed(folder: Path) -> None:
        if (folder / "table").exists():
            raise KeyboardInterrupt
        rmtree(folder)

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        home.bury("notes", {})
    monkeypatch.undo()
    assert home.known() == ["notes"] and home.names() == [] and not understanding.exists()
    home.sweep("notes", grace=0)
    assert [path.name for path in understanding.parent.iterdir()] == ["pointers"]


def test_of_two_who_point_at_the_same_moment_one_is_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [home.fresh("notes"), home.fresh("notes")]
    both_numbered = threading.Barrier(2)
    failed: list[StoreError] = []

    link = os.link

    def link_together(source: Path, target: Path) -> None:
        both_numbered.wait(timeout=10)
        link(source, target)

    monkeypatch.setattr(os, "link", link_together)

    def point(folder: Path) -> None:
        try:
            home.point("notes", folder, after=home.latest("notes"))
        except StoreError as error:
            failed.append(error)

    threads = [threading.Thread(target=point, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) == 1 and "notes" in failed[0].message
    assert home.incarnation("notes") in folders
    assert [path.name for path in (home.data / "namespaces/notes/pointers").iterdir()] == ["1.json"]


def test_a_damaged_pointer_is_named(home: Home) -> None:
    born(home, "notes")
    (home.data / "namespaces/notes/pointers/1.json").write_text("")
    with pytest.raises(Torn, match="notes"):
        home.incarnation("notes")


def test_what_nothing_names_and_nobody_writes_is_swept_after_a_grace(home: Home) -> None:
    former, living = born(home, "notes"), home.fresh("notes")
    home.point("notes", living, after=home.latest("notes"))
    in_work = home.fresh("notes")
    lock = WriterLock(in_work / "writer.lock")
    lock.acquire(take_over=False)

    assert home.sweep("notes", grace=3600) == 0
    assert former.exists(), "somebody may still be reading it"
    assert home.sweep("notes", grace=0) == 1
    assert not former.exists() and living.exists() and in_work.exists()
    lock.release()
    assert home.sweep("notes", grace=0) == 1
    assert home.incarnation("notes") == living and living.exists()
    assert home.sweep("never-was", grace=0) == 0
