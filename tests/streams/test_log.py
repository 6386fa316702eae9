"""Tests of the durable log: against a naive list, under threads, processes and SIGKILL."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidEvent, StoreError
from index.types import Accepted, DocumentEvent
from streams.events import encode
from streams.log import Log

from ..support import wait_until

ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = ("ada", "bob", "eve")


def event(id: str, namespace: str = "ada", **fields: object) -> DocumentEvent:
    return DocumentEvent.model_validate({"namespace": namespace, "id": id, "text": f"text of {id}", **fields})


def everything(log: Log, namespace: str = "ada") -> list[Accepted]:
    return log.read(namespace, 0, 1_000_000, 1 << 40)


def ids(accepted: list[Accepted]) -> list[str]:
    return [item.event.id for item in accepted]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path / "log.db") as log:
        yield log


BATCH = st.lists(st.tuples(st.sampled_from(NAMESPACES), st.integers(0, 60), st.none() | st.integers(0, 9)), max_size=5)
STEP = st.one_of(
    st.tuples(st.just("append"), BATCH),
    st.tuples(st.just("mark"), st.tuples(st.sampled_from(NAMESPACES), st.integers(0, 30))),
    st.tuples(st.just("trim"), st.integers(0, 20)),
    st.tuples(st.just("reopen"), st.just(None)),
)


@given(st.lists(STEP, max_size=12), st.lists(st.integers(-10, 10), min_size=1), st.integers(1, 4), st.integers(1, 400))
def test_it_equals_a_naive_list(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]], ticks: list[int], some: int, size: int
) -> None:
    """`ticks` moves the clock, also back; `some` and `size` limit the reads."""
    path = tmp_path_factory.mktemp("log") / "log.db"
    seconds = [1000]

    def clock() -> int:
        seconds.append(seconds[-1] + ticks[len(seconds) % len(ticks)])
        return seconds[-1] * 1_000_000

    log = Log(path, clock=clock)
    kept: list[tuple[int, int, DocumentEvent]] = []
    marks: dict[str, int] = {}
    position = stamp = 0
    for name, value in steps:
        match name, value:
            case "append", list(rows):
                events = [event(f"d{number}", namespace, version=version) for namespace, number, version in rows]
                tokens = log.append(events)
                assert tokens == [f"log:{position + place}" for place in range(1, len(events) + 1)]
                for one in events:
                    position, stamp = position + 1, max(stamp + 1, seconds[-1] * 1_000_000)
                    kept.append((position, stamp, one))
            case "mark", (str(namespace), int(mark)):
                log.set_marks({namespace: mark})
                marks[namespace] = max(mark, marks.get(namespace, 0))
            case "trim", int(retention):
                trimmed = log.trim(retention)
                before = (seconds[-1] - retention) * 1_000_000
                rest = [row for row in kept if row[0] > marks.get(row[2].namespace, 0) or row[1] > before]
                assert trimmed == len(kept) - len(rest)
                kept = rest
            case _:
                log.close()
                log = Log(path, clock=clock)
    assert log.last_position() == position
    assert log.marks() == marks
    for after in (0, position // 2):
        assert log.pending(after) == {row[2].namespace: row[0] for row in kept if row[0] > after}
    for namespace in NAMESPACES:
        for after in (0, position // 2):
            late = [row for row in kept if row[2].namespace == namespace and row[0] > after]
            assert log.waiting(namespace, after) == len(late)
            assert log.waiting_since(namespace, after) == (late[0][1] if late else None)
        expected = [
            Accepted(
                at, when, one if one.version is not None else one.model_copy(update={"version": when}), {"log": at}
            )
            for at, when, one in kept
            if one.namespace == namespace
        ]
        assert everything(log, namespace) == expected
        read: list[Accepted] = []
        while page := log.read(namespace, after := read[-1].position if read else 0, some, size):
            assert page[0].position > after
            payloads = [len(encode(item.event)) for item in page]
            # A version that the log gave to an event is no part of its payload.
            assert len(page) <= some and (len(page) == 1 or sum(payloads) <= size + 28 * len(page))
            read += page
        assert read == expected
    log.close()


def test_a_page_ends_before_the_event_that_would_be_too_much(log: Log) -> None:
    log.append([event("small"), event("large", text="x" * 1000), event("late")])
    assert ids(log.read("ada", 0, 10, 500)) == ["small"]
    assert ids(log.read("ada", 1, 10, 500)) == ["large"]
    assert ids(log.read("ada", 0, 10, 1500)) == ["small", "large", "late"]
    assert ids(log.read("ada", 0, 2, 1500)) == ["small", "large"]


def test_every_commit_waits_for_the_disk(log: Log) -> None:
    with log.database.transaction() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


APPENDER = """
import sys, threading
from index.types import DocumentEvent
from streams.log import Log

name, threads, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
log = Log(sys.argv[1])
printing = threading.Lock()

def work(thread):
    for number in range(count):
        id = f"{name}-{thread}-{number}"
        [token] = log.append([DocumentEvent(namespace="ada", id=id, text="t" * 500)])
        with printing:
            print(token, id, flush=True)

workers = [threading.Thread(target=work, args=(thread,), daemon=True) for thread in range(threads)]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""


def appender(path: Path, name: str, threads: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", APPENDER, str(path), name, str(threads), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def in_order(accepted: list[Accepted]) -> bool:
    """Positions and stamps increase, and every thread's own events are in the order it sent them."""
    sent: dict[str, list[int]] = {}
    for item in accepted:
        thread, _, number = item.event.id.rpartition("-")
        sent.setdefault(thread, []).append(int(number))
    increasing = all(a.position < b.position and a.stamp < b.stamp for a, b in pairwise(accepted))
    return increasing and all(numbers == list(range(len(numbers))) for numbers in sent.values())


@pytest.mark.parametrize("acknowledged", random.Random(7).sample(range(1, 300), 3))
def test_what_was_acknowledged_survives_sigkill(tmp_path: Path, acknowledged: int) -> None:
    path = tmp_path / "log.db"
    with appender(path, "child", 4, 1_000_000) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(acknowledged)]
        child.send_signal(signal.SIGKILL)
        lines += [line for line in child.stdout if line.endswith("\n")]
    with Log(path) as log:
        stored = everything(log)
        found = {f"log:{item.position}": item.event.id for item in stored}
        for token, id in map(str.split, lines):
            assert found.get(token) == id
        assert in_order(stored)
        [token] = log.append([event("after")])
        assert token == f"log:{stored[-1].position + 1}"


def test_processes_share_one_log(tmp_path: Path) -> None:
    """They also make the file at the same moment."""
    path = tmp_path / "deep" / "folder" / "log.db"
    children = [appender(path, f"child{number}", 2, 40) for number in range(3)]
    for child in children:
        child.communicate(timeout=60)
        assert child.returncode == 0
    with Log(path) as log:
        stored = everything(log)
        assert [item.position for item in stored] == list(range(1, 241))
        assert in_order(stored)


def together(calls: Sequence[Callable[[], object]], log: Log) -> list[object]:
    """What each call returned or raised; all but the first were made to wait for their turn together."""
    results: list[object] = [None] * len(calls)

    def run(place: int) -> None:
        try:
            results[place] = calls[place]()
        except Exception as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    with log.database.transaction():
        for thread in threads:
            thread.start()
        # The first has left the queue to commit and waits for the transaction of this block.
        wait_until(lambda: len(log._waiting) == len(calls) - 1)
    for thread in threads:
        thread.join()
    return results


def test_concurrent_appends_share_a_commit(log: Log) -> None:
    commits: list[str] = []
    log.database._writer.set_trace_callback(lambda statement: commits.append(statement))
    calls = [partial(log.append, [event(f"d{number}"), event(f"e{number}")]) for number in range(20)]
    tokens = together(calls, log)
    assert commits.count("COMMIT") == 3  # of the block itself, of the first caller, of all others
    found = {f"log:{item.position}": item.event.id for item in everything(log)}
    assert [[found[token] for token in pair] for pair in tokens] == [[f"d{n}", f"e{n}"] for n in range(20)]  # type: ignore[attr-defined]


def test_a_full_disk_acknowledges_nothing(log: Log) -> None:
    log.append([event("before")])
    log.database._writer.execute("PRAGMA max_page_count = 12")
    calls = [partial(log.append, [event(f"d{number}", text="x" * 5000)]) for number in range(20)]
    results = together(calls, log)
    refused = [result for result in results if isinstance(result, StoreError)]
    assert len(refused) >= 19 and "Free space" in str(refused[-1])
    assert len(everything(log)) == 1 + len(results) - len(refused)
    log.database._writer.execute("PRAGMA max_page_count = 100000")
    log.append([event("after")])
    assert ids(everything(log))[-1] == "after"


def test_what_is_no_json_is_refused_before_it_costs_others(log: Log) -> None:
    for value in (object(), float("nan"), "\ud800"):
        with pytest.raises(InvalidEvent, match="ada/odd"):
            log.append([event("fine"), event("odd", metadata={"key": value})])
    assert log.append([event("next")]) == ["log:1"]


def test_a_lock_held_too_long_is_an_error_and_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Log(path, busy_seconds=0.05) as log:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="Another process"):
            log.append([event("a")])
        other.execute("ROLLBACK")
        other.close()
        assert log.append([event("b")]) == ["log:1"]
        assert ids(everything(log)) == ["b"]


def test_files_that_are_not_a_log_are_refused_and_kept(tmp_path: Path) -> None:
    garbage, foreign, newer = tmp_path / "garbage.db", tmp_path / "foreign.db", tmp_path / "newer.db"
    garbage.write_bytes(b"no database " * 1000)
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE events (theirs)")
    connection.close()
    Log(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = [path.read_bytes() for path in (garbage, foreign)]
    for path, reason in ((garbage, "Move the file away"), (foreign, "another program"), (newer, "Upgrade")):
        with pytest.raises(StoreError, match=reason) as raised:
            Log(path)
        assert str(path) in str(raised.value)
    assert [path.read_bytes() for path in (garbage, foreign)] == before
    with pytest.raises(StoreError, match="folder"):
        Log(garbage / "log.db")


def test_a_payload_of_another_format_is_named(log: Log) -> None:
    log.append([event("a")])
    with log.database.transaction() as connection:
        connection.execute("UPDATE events SET payload = ?", (b'{"v":2}',))
    with pytest.raises(StoreError, match="event 1 of"):
        everything(log)


def test_wait_wakes_for_this_process_and_for_others(log: Log, tmp_path: Path) -> None:
    assert log.wait(0, timeout=0.0) == 0
    woken: list[int] = []
    for other in (log, Log(tmp_path / "log.db")):
        last = log.last_position()
        waiter = threading.Thread(target=lambda last=last: woken.append(log.wait(last, timeout=30.0)))
        waiter.start()
        other.append([event("a"), event("b")])
        waiter.join(timeout=30.0)
    assert woken == [2, 4]


def test_every_event_comes_back_as_it_was_sent(log: Log) -> None:
    sent = [
        event("plain", version=0),
        DocumentEvent(op="delete", namespace="ada", id="gone", version=2**63 - 1),
        event("ключ", version=7, title="\x00 “title”", metadata={"a": [None, True, 1e308, -(2**63)], "": {"ü": ""}}),
        event("old", version=1, event_time=datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    ]
    log.append(sent)
    assert [item.event for item in everything(log)] == sent


def test_trim_ends_at_the_mark_and_positions_are_not_used_again(tmp_path: Path) -> None:
    with Log(tmp_path / "log.db") as log:
        log.append([event("a1"), event("a2"), event("b", "bob"), event("a4")])
        log.set_marks({"ada": 2})
        assert log.trim(retention=3600.0) == 0
        assert log.trim() == 2
        assert ids(everything(log)) == ["a4"] and ids(everything(log, "bob")) == ["b"]
        log.set_marks({"ada": 4, "bob": 3})
        assert log.trim() == 2
        assert log.pending() == {}
    with Log(tmp_path / "log.db") as log:
        assert log.last_position() == 4
        assert log.append([event("next")]) == ["log:5"]
