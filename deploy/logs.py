"""What a process that runs for long says of its work."""

from __future__ import annotations

import logging
import time
from typing import Final

SECONDS: Final = 30.0
"""Within which a client of Kafka says the same once."""

_CHATTY: Final = ("aiokafka", "faust", "kafka", "mode")


def log_plainly() -> None:
    """What happens, on standard error, one line each; the clients of Kafka only speak of what is wrong, and seldom."""
    handler = logging.StreamHandler()
    handler.addFilter(Seldom())
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[handler]
    )
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)


class Seldom(logging.Filter):
    """Lets what the clients of Kafka say through once in a while: without their broker they say it 300 times a second.

    What differs in its arguments only is the same. How often it was left out is told with the next one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], tuple[float, int]] = {}
        """When it was let through, and how often it came since, by logger and message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See logging.Filter."""
        if record.name.partition(".")[0] not in _CHATTY:
            return True
        key, now = (record.name, str(record.msg)), time.monotonic()
        since, more = self._said.get(key, (-SECONDS, 0))
        if now < since + SECONDS:
            self._said[key] = since, more + 1
            return False
        self._said[key] = now, 0
        if more:
            record.msg = f"{record.msg} (and {more} times more since it was said before)"
        return True
