"""Tests of the manifests: one commit wins, no number means two things, and what is damaged is said to be."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import NotFound, SnapshotGone, Torn, WrongFingerprint
from index.graph.segment import SegmentFile
from index.manifest import Counts, Fingerprint, Manifest, Manifests, now

from .written import MADE


@pytest.fixture
def manifests(tmp_path: Path) -> Manifests:
    made = Manifests(tmp_path / "manifests")
    made.create()
    return made


def manifest(number: int, epoch: int = 1, *, made: Fingerprint = MADE) -> Manifest:
    return Manifest(
        number=number, epoch=epoch, cause="batch", time=now(), parent="", fingerprint=made,
        tables={"documents": 1, "passages": 2, "entities": 3, "facts": 4},
        segments=(SegmentFile(name="one.arrow", size=1, checksum="c", entries=1),),
        delta=None, positions={"log": 7}, newest_event_time=-1, counts=Counts(documents=2),
    ).sealed()  # fmt: skip


def test_what_is_committed_is_read(manifests: Manifests) -> None:
    written = manifest(1)
    assert manifests.commit(written)
    assert manifests.read(1) == written
    assert manifests.numbers() == [1]
    assert [path.name for path in manifests.folder.iterdir() if path.is_file()] == ["00000000000000000001.json"]


def test_of_many_who_commit_a_number_one_wins(manifests: Manifests) -> None:
    start, won = threading.Barrier(8), [False] * 8

    def commit(writer: int) -> None:
        start.wait()
        won[writer] = manifests.commit(manifest(1, epoch=writer))

    threads = [threading.Thread(target=commit, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(won) == 1
    assert manifests.read(1).epoch == won.index(True)
    assert not [path for path in manifests.folder.iterdir() if path.name.startswith(".")], "drafts are left"


def test_a_number_is_never_used_again(manifests: Manifests) -> None:
    assert manifests.next_number() == 1
    for number in (1, 2, 5):
        manifests.commit(manifest(number))
    manifests.set_aside(5)
    assert manifests.numbers() == [1, 2]
    assert manifests.next_number() == 6
    assert (manifests.torn / "00000000000000000005.json").exists()
    manifests.remove(1)
    manifests.remove(1)
    assert manifests.numbers() == [2]


def test_a_number_that_cleaning_has_freed_stays_free(manifests: Manifests) -> None:
    """A writer that slept for long comes too late, and nobody may find what it wrote between what came after."""
    for number in (1, 2, 3):
        assert manifests.commit(manifest(number, epoch=2))
    manifests.remove(2)
    assert not manifests.commit(manifest(2, epoch=1))
    assert manifests.numbers() == [1, 3]


def test_what_is_no_manifest_is_not_counted(manifests: Manifests) -> None:
    for name in (".3.draft", "3.json", "00000000000000000004.json.bak", "notes.txt"):
        (manifests.folder / name).write_text("{}")
    assert manifests.numbers() == []
    assert manifests.next_number() == 1


def test_a_number_that_cannot_be_read_says_why(manifests: Manifests) -> None:
    for number in (4, 5, 8):
        manifests.commit(manifest(number))
    with pytest.raises(SnapshotGone, match="nearest that stand: 4"):
        manifests.read(3)
    with pytest.raises(SnapshotGone):
        manifests.read(6)
    for never in (0, 9, -1):
        with pytest.raises(NotFound):
            manifests.read(never)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_any_changed_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, place: int, change: int) -> None:
    manifests = Manifests(tmp_path_factory.mktemp("manifests"))
    written = manifest(1)
    manifests.commit(written)
    path = manifests.path(1)
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= change
    path.write_bytes(bytes(data))
    try:
        assert manifests.read(1) == written, "only what means the same may pass, such as another blank"
    except Torn as torn:
        assert str(path) in torn.message


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_manifest_cut_short_is_torn(manifests: Manifests, keep: int) -> None:
    manifests.commit(manifest(1))
    manifests.path(1).write_bytes(manifests.path(1).read_bytes()[:keep])
    with pytest.raises(Torn):
        manifests.read(1)


def test_the_checksum_covers_every_field(manifests: Manifests) -> None:
    manifests.commit(manifest(1))
    path = manifests.path(1)
    fields = json.loads(path.read_text())
    fields["positions"]["log"] += 1
    path.write_text(json.dumps(fields))
    with pytest.raises(Torn, match="checksum"):
        manifests.read(1)


def test_another_fingerprint_is_refused_with_every_difference(tmp_path: Path) -> None:
    written = manifest(1)
    written.require(MADE, tmp_path)
    other = MADE.model_copy(update={"chunker": "content", "dimensions": 99})
    with pytest.raises(WrongFingerprint, match=re.escape("chunker is 'one passage' and not 'content'")) as caught:
        written.require(other, tmp_path)
    assert "dimensions is 16 and not 99" in caught.value.message
    assert "extractor" not in caught.value.message
    assert "rebuild" in caught.value.hint
