"""The clients of Kafka may not fill the log of a worker whose broker is away."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterator

import pytest

from deploy import logs
from deploy.logs import Seldom


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged by `aiokafka.test` and `gistream.test`."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(Seldom())
    loggers = [logging.getLogger(name) for name in ("aiokafka.test", "gistream.test")]
    for one in loggers:
        one.addHandler(handler)
    yield stream
    for one in loggers:
        one.removeHandler(handler)


def test_what_a_client_repeats_is_said_once(written: io.StringIO) -> None:
    for number in range(100):
        logging.getLogger("aiokafka.test").error("no node %d: %s", number, "gone")
        logging.getLogger("aiokafka.test").error("no metadata")
    assert written.getvalue() == "no node 0: gone\nno metadata\n"


def test_how_often_it_came_is_said_later(written: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    client, now = logging.getLogger("aiokafka.test"), time.monotonic()
    for later in (0.0, 1.0, 2.0, logs.SECONDS + 1, 2 * logs.SECONDS + 2):
        monkeypatch.setattr(time, "monotonic", lambda moment=now + later: moment)
        client.error("no node %d", 1)
    again = "no node 1 (and 2 times more since it was said before)"
    assert written.getvalue() == f"no node 1\n{again}\nno node 1\n"


def test_our_own_words_all_stay(written: io.StringIO) -> None:
    for _ in range(3):
        logging.getLogger("gistream.test").warning("the same")
    assert written.getvalue() == 3 * "the same\n"
