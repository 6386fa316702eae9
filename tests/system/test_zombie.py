"""A writer that was stopped and comes back after another took over is refused, leaves no trace, and harms nobody."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import index.writer
from index.errors import StoreError, WriterBusy, WriterFenced
from index.graph.segment import Segment
from index.home import Home
from index.keys import passage_key
from index.manifest import Manifest, Manifests
from index.models.hashing import HashingEmbedder
from index.plan import Changes
from index.reader import Reader
from index.recovery import newest_holding
from index.types import Document, Extraction, Passage, Triple
from index.writer import Writer
from streams.local import Runner
from streams.log import Log
from streams.rebuild import verify

from .ingesting import NAMESPACE, PIPELINE
from .test_crash import ROOT, Promised, committed

EMBEDDER = HashingEmbedder(32)
MADE = PIPELINE.fingerprint.model_copy(update={"dimensions": 32, "embedder": EMBEDDER.fingerprint})


def change(document: str, text: str) -> Changes:
    key = passage_key("zombie", document, text, 0)
    extraction = Extraction(triples=(Triple(document, "says", text),))
    passage = Passage(key, document, "", text, "{}", None, extraction)
    return Changes(documents=[Document(document, 1, False, "", text, "{}", None, 1, (key,))], added=[passage])


def open_second(folder: Path) -> Writer:
    return Writer.open(folder, MADE, EMBEDDER.embed, take_over=True)


def stop_before_writing(first: Writer, then: Callable[[], None]) -> None:
    embed = first._embed

    def embed_late(texts):  # type: ignore[no-untyped-def]
        then()
        return embed(texts)

    first._embed = embed_late


def stop_between_tables(first: Writer, then: Callable[[], None]) -> None:
    add = first.tables.add

    def add_late(name, rows):  # type: ignore[no-untyped-def]
        if name == "facts":
            then()
        add(name, rows)

    first.tables.add = add_late  # type: ignore[method-assign]


def stop_before_the_manifest(first: Writer, then: Callable[[], None]) -> None:
    commit = first.manifests.commit

    def commit_late(manifest):  # type: ignore[no-untyped-def]
        then()
        return commit(manifest)

    first.manifests.commit = commit_late  # type: ignore[method-assign]


@pytest.mark.parametrize("busy", [True, False], ids=["second-committed", "second-only-opened"])
@pytest.mark.parametrize("stop", [stop_before_writing, stop_between_tables, stop_before_the_manifest])
def test_a_zombie_is_refused_and_invisible(
    tmp_path: Path, stop: Callable[[Writer, Callable[[], None]], None], busy: bool
) -> None:
    first = Writer.create(tmp_path, MADE, EMBEDDER.embed)
    first.commit(change("before", "common ground"), {"log": 1}, 1)
    second: list[Writer] = []

    def take_over() -> None:
        if not second:
            second.append(open_second(tmp_path))
            if busy:
                second[0].commit(change("second", "rightful words"), {"log": 2}, 2)

    stop(first, take_over)
    with pytest.raises(WriterFenced):
        first.commit(change("zombie", "undead words"), {"log": 2}, 2)

    [writer] = second
    writer.commit(change("after", "life goes on"), {"log": 3}, 3)
    snapshot = Reader(tmp_path).snapshot
    rows = snapshot.documents_by_id(["before", "zombie", "second", "after"])
    assert set(rows) == {"before", "after"} | ({"second"} if busy else set())
    assert snapshot.passages.n_live == snapshot.facts.n_live == len(rows)
    for table in ("documents", "passages", "facts"):
        assert snapshot.dataset(table).count_rows() == len(rows)
    with pytest.raises(WriterFenced):
        first.commit(change("zombie", "undead words again"), {"log": 4}, 4)


def test_whoever_is_stopped_while_it_opens_undoes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Writer.create(tmp_path, MADE, EMBEDDER.embed) as first:
        first.commit(change("before", "common ground"), {"log": 1}, 1)
    others = list[Writer]()

    def late(folder: Path, manifests: Manifests, *, durable: int | None) -> tuple[Manifest, dict[str, Segment]]:
        found = newest_holding(folder, manifests, durable=durable)
        monkeypatch.undo()
        others.append(open_second(folder))
        others[0].commit(change("second", "rightful words"), {"log": 2}, 2)
        return found

    monkeypatch.setattr(index.writer, "newest_holding", late)
    with pytest.raises(WriterFenced):
        open_second(tmp_path)
    [other] = others
    other.commit(change("after", "life goes on"), {"log": 3}, 3)
    assert len(Reader(tmp_path).snapshot.documents_by_id(["before", "second", "after"])) == 3


def test_a_number_that_was_cleaned_away_is_not_free(tmp_path: Path) -> None:
    first = Writer.create(tmp_path, MADE, EMBEDDER.embed)
    second = open_second(tmp_path)
    second.commit(change("second", "rightful words"), {"log": 1}, 1)
    second.manifests.remove(first.manifest.number + 1)
    standing = second.manifests.numbers()
    with pytest.raises(WriterFenced):
        first.commit(change("zombie", "undead words"), {"log": 1}, 1)
    assert second.manifests.numbers() == standing
    assert Manifests(tmp_path / "manifests").newest().epoch == second.manifest.epoch


def test_a_second_writer_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    with Writer.create(tmp_path, MADE, EMBEDDER.embed), pytest.raises(WriterBusy, match="take-over"):
        Writer.open(tmp_path, MADE, EMBEDDER.embed)
    Writer.open(tmp_path, MADE, EMBEDDER.embed).close()


def stop_outside_the_log(process: subprocess.Popen[str], folder: Path) -> None:
    """Stop a process at a moment when it does not hold the write lock of the log, which nobody could take from it."""
    while True:
        process.send_signal(signal.SIGSTOP)
        try:
            with Log(folder / "log.db", busy_seconds=0.2) as log:
                log.set_marks({NAMESPACE: 0})
            return
        except StoreError:
            process.send_signal(signal.SIGCONT)


@pytest.mark.slow
def test_a_stopped_process_that_wakes_up_ends_with_the_reason(tmp_path: Path) -> None:
    """SIGSTOP in mid-work, take-over by this process, SIGCONT: the woken process must end, the index be whole."""
    promised = Promised()
    command = [sys.executable, "-m", "tests.system.ingesting", str(tmp_path), "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            while committed(tmp_path) < 4:
                promised.hear(process.stdout.readline())
            stop_outside_the_log(process, tmp_path)
            with (
                Log(tmp_path / "log.db") as log,
                closing(Runner(Home(tmp_path), log, PIPELINE, take_over=True)) as runner,
            ):
                runner.drain()
                process.send_signal(signal.SIGCONT)
                # What was read ahead is in the file object, so both are read to the end through it.
                out, errors = process.stdout.read(), process.stderr.read()
                process.wait(timeout=60)
        finally:
            process.kill()
    for line in out.splitlines():
        promised.hear(line)
    assert process.returncode != 0
    assert "WriterFenced" in errors
    promised.check(tmp_path)
    numbers = Manifests(Home(tmp_path).incarnation(NAMESPACE) / "manifests").numbers()
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert not list(verify(Home(tmp_path), NAMESPACE, PIPELINE))
