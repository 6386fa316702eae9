"""The letters beside the log are in its file: a replay and its event are one transaction, and wake who waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from index.errors import InvalidEvent, NotFound
from index.types import DocumentEvent
from streams.dead_letters import DeadLetters
from streams.letter import DeadLetter
from streams.log import Log


def event(id: str) -> DocumentEvent:
    return DocumentEvent(namespace="ada", id=id, text=f"text of {id}")


def waiting(log: Log) -> list[tuple[int, str]]:
    """Position and document of what is in the log."""
    return [(item.position, item.event.id) for item in log.read("ada", 0, 1_000, 1 << 30)]


def test_a_replay_is_in_the_log_once(tmp_path: Path) -> None:
    with Log(tmp_path / "log.db") as log:
        letters = DeadLetters(log)
        number = letters.put(DeadLetter("feed", "decode", "no id", b'{"text": "x"}'))
        assert letters.replay(number, event("repaired")) == letters.show(number).replayed == "log:1"
        assert waiting(log) == [(1, "repaired")]
        with pytest.raises(NotFound):
            letters.replay(number, event("again"))
        assert waiting(log) == [(1, "repaired")] and log.append([event("next")]) == ["log:2"]


def test_what_cannot_be_accepted_leaves_its_letter_waiting(tmp_path: Path) -> None:
    with Log(tmp_path / "log.db") as log:
        letters = DeadLetters(log)
        number = letters.put(DeadLetter("feed", "decode", "no id", b"{}"))
        with pytest.raises(InvalidEvent):
            letters.replay(number, event("odd").model_copy(update={"metadata": {"a": {1, 2}}}))
        assert letters.count() == 1 and waiting(log) == []
