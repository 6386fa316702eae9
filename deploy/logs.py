"""What a process that runs for long says of its work."""

from __future__ import annotations

import logging


def log_plainly() -> None:
    """What happens, on standard error, one line each; the clients of Kafka only speak of what is wrong."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("aiokafka", "faust", "mode", "kafka"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
