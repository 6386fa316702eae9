"""What the exit code of a command means: one number for each kind of end, and which error leads to which."""

from __future__ import annotations

from enum import IntEnum

from index.errors import (
    BadRequest,
    BrokerError,
    FeedError,
    GistreamError,
    ModelError,
    NotFound,
    NotYet,
    SnapshotGone,
    Stalled,
    StoreError,
    WriterError,
)


class Exit(IntEnum):
    """Scripts may rely on these numbers. Ctrl-C ends a command with 130, as in every shell."""

    OK = 0
    REFUSED = 1
    """`verify` or `topics check` found a difference, or some of the input was refused; the rest of it was accepted."""
    USAGE = 2
    """An option, a setting or a question makes no sense."""
    NOT_FOUND = 3
    """No such namespace, document, snapshot, feed, dead letter or file."""
    BUSY = 4
    """Another process writes there, or took over."""
    DAMAGED = 5
    """Stored files cannot be read or written, are damaged, or were made with other settings."""
    MODEL = 6
    """An embedder or extractor failed or did not answer."""
    NOT_YET = 7
    """A write did not become visible within the time allowed; the same command may succeed later."""
    FEED = 8
    """The source of a feed could not be read; the others were."""
    BROKER = 9
    """Kafka did not answer or refused, or its topics are missing or others than before."""
    STALLED = 10
    """A worker got nowhere and ended; started again, it may."""
    DEFECT = 70
    """A defect of gistream; the traceback says where."""


_BY_ERROR: tuple[tuple[type[Exception], Exit], ...] = (
    (SnapshotGone, Exit.NOT_FOUND),
    (NotFound, Exit.NOT_FOUND),
    (StoreError, Exit.DAMAGED),
    (WriterError, Exit.BUSY),
    (ModelError, Exit.MODEL),
    (NotYet, Exit.NOT_YET),
    (FeedError, Exit.FEED),
    (BrokerError, Exit.BROKER),
    (Stalled, Exit.STALLED),
    (BadRequest, Exit.USAGE),
    (GistreamError, Exit.REFUSED),
    (FileNotFoundError, Exit.NOT_FOUND),
    (OSError, Exit.DAMAGED),
)
"""The first row that fits counts, so a kind stands above its parent."""


def exit_of(error: Exception) -> Exit:
    """The end that an error leads to."""
    return next((end for kind, end in _BY_ERROR if isinstance(error, kind)), Exit.DEFECT)
