"""Every error that gistream raises on purpose, as one tree.

GistreamError
├── InvalidEvent          an event cannot be decoded or breaks a rule: it belongs into the dead letters
├── StoreError            the files of a namespace are not as they must be
│   ├── Torn              a file is cut short or its checksum is wrong
│   ├── WrongFingerprint  the index was made otherwise: rebuild it
│   └── SnapshotGone      that snapshot was cleaned away
├── WriterError
│   ├── WriterBusy        another process on this machine writes this namespace
│   ├── WriterFenced      another writer took the namespace over: stop
│   └── TablesMoved       another writer touched a table and restoring it three times did not help
├── ModelError            an embedder or extractor failed
│   ├── MissingRecording  texts that a recording does not hold
│   ├── ModelUnavailable  the endpoint did not answer (recoverable)
│   └── ModelHeld         nothing is asked until an operator changes a setting
│       ├── ModelMisset   the endpoint refuses its key, the model's name, or every question
│       └── BudgetSpent   the next call might cost more than the budget has left
├── FeedError             a source cannot be read now (recoverable)
│   └── FeedEnded         a source said that it is no more: it is not asked again
├── BrokerError           Kafka cannot be used
│   ├── BrokerUnavailable no broker answered in time (recoverable)
│   ├── BrokerRefused     a broker refuses what it was asked
│   └── WrongTopics       the topics are not those that this data folder knows, or are missing
├── NotFound              no such namespace, document, snapshot, feed or dead letter
├── NotYet                a write is not visible within the time the caller allowed (recoverable)
│   └── TooStale          what is visible is older than the caller allows
├── Stalled               a worker got nowhere: it ends and is started again (recoverable)
└── BadRequest            a question or setting that makes no sense
"""

from __future__ import annotations


class GistreamError(Exception):
    """Root. `hint` tells what to do next; `recoverable` whether the same call may succeed later."""

    recoverable = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint


class InvalidEvent(GistreamError):
    """An event that can never be indexed; the message names the document and the field."""


class StoreError(GistreamError):
    """The files of a namespace are not as they must be."""


class Torn(StoreError):
    """A file is cut short, missing or fails its checksum; the message carries its path."""


class WrongFingerprint(StoreError):
    """The index was made with other settings, models or an older format."""


class SnapshotGone(StoreError):
    """The snapshot asked for is beyond the retention, or of an index that a rebuild has replaced."""


class WriterError(GistreamError):
    """A namespace cannot be written by this process."""


class WriterBusy(WriterError):
    """Another process on this machine holds the namespace's write lock."""


class WriterFenced(WriterError):
    """Another writer has a newer epoch; nothing this process wrote since is visible. It must stop."""


class TablesMoved(WriterError):
    """A table's version moved under the writer more often than it may."""


class ModelError(GistreamError):
    """An embedder or extractor failed."""


class MissingRecording(ModelError):
    """A recording does not hold some of the texts it was asked for."""


class ModelUnavailable(ModelError):
    """The endpoint did not answer in time or refused."""

    recoverable = True


class ModelHeld(ModelError):
    """The model is not asked until an operator changes a setting; no fault of any document, so their events wait."""


class ModelMisset(ModelHeld):
    """The endpoint refuses its key, the model's name, or whatever it is asked."""


class BudgetSpent(ModelHeld):
    """The next call might cost more than the budget has left."""


class FeedError(GistreamError):
    """A source cannot be read now; its feed tries again by itself, after `after` seconds where the source says so."""

    recoverable = True

    def __init__(self, message: str, *, hint: str = "", after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.after = after


class FeedEnded(FeedError):
    """A source said that it is no more, and is not asked again."""

    recoverable = False


class BrokerError(GistreamError):
    """Kafka cannot be used."""


class BrokerUnavailable(BrokerError):
    """No broker answered in time; what was being sent may have been stored."""

    recoverable = True


class BrokerRefused(BrokerError):
    """A broker refuses what it was asked, and would refuse it again."""


class WrongTopics(BrokerError):
    """The topics of the cluster are missing, or not those that this data folder knows."""


class NotFound(GistreamError):
    """No such namespace, document, snapshot, feed or dead letter."""


class NotYet(GistreamError):
    """A write is not visible within the time the caller allowed."""

    recoverable = True


class TooStale(NotYet):
    """What is visible lacks events that were accepted longer ago than the caller allows."""


class Stalled(GistreamError):
    """A worker finished nothing for too long although there was something to do."""

    recoverable = True


class BadRequest(GistreamError):
    """A question or setting that makes no sense."""
