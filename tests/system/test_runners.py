"""One contract for whatever carries events into the index: the runner over a log, and workers over Kafka."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from deploy.assembly import build_pipeline, open_log
from deploy.settings import Settings
from index.home import Home
from index.reader import Reader
from index.token import Token
from index.types import DocumentEvent
from streams.dead_letters import DeadLetters
from streams.letter_topic import TopicLetters
from streams.local import Runner
from streams.position import NOTHING, positions
from streams.rebuild import verify
from tests.support import wait_until

from .streaming import PATIENCE, Stream

TEXTS = [f"Anna Ruiz met Bo Larsen at Cape Horn in {year}." for year in range(1900, 1912)]
POISON = "Nobody ever recorded what this says."
"""The extractor raises for it, each time."""


class Carrier(Protocol):
    """What carries events into the index of `home`, and goes on by itself."""

    settings: Settings
    home: Home

    def send(self, events: Sequence[DocumentEvent]) -> list[str]: ...

    def letters(self) -> int:
        """How many wait."""
        ...

    def restart(self) -> None: ...


class Embedded:
    """The runner in its thread, over a log."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.settings = Settings(data=folder / "data", **settings)
        self.settings.data.mkdir()
        self.home = Home(self.settings.data)
        self._log = open_log(self.settings)
        self._start()

    def _start(self) -> None:
        self._runner = Runner(self.home, self._log, build_pipeline(self.settings))
        self._runner.start()

    def send(self, events: Sequence[DocumentEvent]) -> list[str]:
        return self._log.append(events)

    def letters(self) -> int:
        return DeadLetters(self._log).count()

    def restart(self) -> None:
        self._runner.close()
        self._start()

    def close(self) -> None:
        self._runner.close()
        self._log.close()


class OverKafka:
    """A worker with both roles, in processes of its own."""

    def __init__(self, folder: Path, bootstrap: str, prefix: str, **settings: Any) -> None:
        self._stream = Stream(folder, bootstrap, prefix, **settings)
        self.settings, self.home, self.send = self._stream.settings, self._stream.home, self._stream.send
        self._letters = TopicLetters(self._stream.inbox, lambda: self._stream.inbox)
        self._stream.start()

    def letters(self) -> int:
        return self._letters.count()

    def restart(self) -> None:
        self._stream.stop(*self._stream.workers)
        self._stream.start()

    def close(self) -> None:
        self._letters.close()
        self._stream.close()


@pytest.fixture(scope="module", params=["embedded", pytest.param("kafka", marks=pytest.mark.slow)])
def carrier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Carrier]:
    folder = tmp_path_factory.mktemp(str(request.param))
    recording = folder / "recording.jsonl"
    rows = [{"text": text, "entities": ["Anna Ruiz", "Bo Larsen", "Cape Horn"]} for text in TEXTS]
    recording.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings: dict[str, Any] = {
        "extractor": f"recorded:{recording}", "chunker": "whole", "embedding_dimensions": 32,
    }  # fmt: skip
    if request.param == "embedded":
        embedded = Embedded(folder, **settings)
        try:
            yield embedded
        finally:
            embedded.close()
        return
    kafka = request.getfixturevalue("kafka")
    over = OverKafka(folder, kafka.bootstrap, f"runners-{os.getpid()}-", **settings)
    try:
        yield over
    finally:
        over.close()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return str(request.node.originalname)[:60]


def upsert(name: str, id: str, text: str, version: int | None = None) -> DocumentEvent:
    return DocumentEvent(namespace=name, id=id, text=text, version=version)


def delete(name: str, id: str, version: int | None = None) -> DocumentEvent:
    return DocumentEvent(op="delete", namespace=name, id=id, version=version)


def is_visible(carrier: Carrier, name: str, token: str) -> bool:
    place = Token.parse(token)
    return positions(carrier.home, name).get(place.source, NOTHING) >= place.position


def sent(carrier: Carrier, *events: DocumentEvent) -> None:
    """Send events one after the other, and wait until all of them are visible."""
    tokens = {token: event.namespace for event in events for token in carrier.send([event])}
    wait_until(
        lambda: all(is_visible(carrier, name, token) for token, name in tokens.items()),
        timeout=PATIENCE,
        what=f"visibility of {tokens}",
    )


def texts(carrier: Carrier, name: str) -> dict[str, str | None]:
    """By id what a namespace holds; None for a tombstone."""
    rows = Reader(carrier.home.incarnation(name)).snapshot.dataset("documents").to_table().to_pylist()
    return {row["id"]: None if row["deleted"] else row["text"] for row in rows}


def versions(carrier: Carrier, name: str) -> dict[str, int]:
    rows = Reader(carrier.home.incarnation(name)).snapshot.dataset("documents").to_table().to_pylist()
    return {row["id"]: row["version"] for row in rows}


def test_an_event_becomes_visible_at_its_token(carrier: Carrier, name: str) -> None:
    [token] = carrier.send([upsert(name, "a", TEXTS[0])])
    assert str(Token.parse(token)) == token
    wait_until(lambda: is_visible(carrier, name, token), timeout=PATIENCE, what=token)
    assert texts(carrier, name) == {"a": TEXTS[0]}


def test_the_last_event_of_a_document_counts(carrier: Carrier, name: str) -> None:
    sent(carrier, *(upsert(name, id, text) for text in TEXTS for id in ("a", "b")))
    assert texts(carrier, name) == {"a": TEXTS[-1], "b": TEXTS[-1]}


def test_a_greater_version_counts_whenever_it_comes(carrier: Carrier, name: str) -> None:
    sent(carrier, *(upsert(name, "a", TEXTS[version], version) for version in (3, 7, 1, 6)))
    assert texts(carrier, name) == {"a": TEXTS[7]}
    assert versions(carrier, name) == {"a": 7}


def test_an_event_without_version_follows_every_small_one(carrier: Carrier, name: str) -> None:
    sent(carrier, upsert(name, "a", TEXTS[1], 10**6), upsert(name, "a", TEXTS[2]), upsert(name, "a", TEXTS[3], 10**7))
    assert texts(carrier, name) == {"a": TEXTS[2]}


def test_deletes_have_versions_too(carrier: Carrier, name: str) -> None:
    sent(
        carrier,
        *(upsert(name, id, TEXTS[0], 5) for id in "abc"),
        *(delete(name, "a", 5), delete(name, "b", 4), delete(name, "c")),
        *(upsert(name, "a", TEXTS[1], 5), delete(name, "c"), delete(name, "never")),
    )
    assert texts(carrier, name) == {"a": None, "b": TEXTS[0], "c": None, "never": None}
    sent(carrier, upsert(name, "c", TEXTS[2]))
    assert texts(carrier, name)["c"] == TEXTS[2]


def test_what_comes_again_changes_nothing(carrier: Carrier, name: str) -> None:
    events = [upsert(name, "a", TEXTS[0], 1), upsert(name, "a", TEXTS[1], 2), upsert(name, "b", TEXTS[2], 1)]
    sent(carrier, *events)
    before = versions(carrier, name), texts(carrier, name)
    sent(carrier, *events, *reversed(events))
    assert (versions(carrier, name), texts(carrier, name)) == before
    assert not [*verify(carrier.home, name, build_pipeline(carrier.settings))]


def test_what_cannot_be_indexed_is_a_letter_and_the_rest_goes_on(carrier: Carrier, name: str) -> None:
    letters = carrier.letters()
    sent(carrier, upsert(name, "a", TEXTS[0]), upsert(name, "bad", POISON), upsert(name, "b", TEXTS[1]))
    assert texts(carrier, name) == {"a": TEXTS[0], "b": TEXTS[1]}
    assert carrier.letters() == letters + 1


def test_a_namespace_in_trouble_holds_up_no_other(carrier: Carrier, name: str) -> None:
    pointer = carrier.home.data / "namespaces" / name / "pointers" / "1.json"
    pointer.parent.mkdir(parents=True)
    pointer.write_text("{")
    [token] = carrier.send([upsert(name, "a", TEXTS[0])])
    other = f"{name}-other"
    sent(carrier, *(upsert(other, id, TEXTS[1]) for id in "abc"))
    assert set(texts(carrier, other)) == {*"abc"}
    pointer.unlink()
    wait_until(lambda: is_visible(carrier, name, token), timeout=PATIENCE, what=token)
    assert texts(carrier, name) == {"a": TEXTS[0]}


def test_it_goes_on_where_it_stopped(carrier: Carrier, name: str) -> None:
    sent(carrier, upsert(name, "a", TEXTS[0]), upsert(name, "b", TEXTS[1]))
    [token] = carrier.send([upsert(name, "a", TEXTS[2])])
    carrier.restart()
    wait_until(lambda: is_visible(carrier, name, token), timeout=PATIENCE, what=token)
    sent(carrier, upsert(name, "c", TEXTS[3]))
    assert texts(carrier, name) == {"a": TEXTS[2], "b": TEXTS[1], "c": TEXTS[3]}
    assert not [*verify(carrier.home, name, build_pipeline(carrier.settings))]
