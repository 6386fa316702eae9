"""What the service is made of: the collaborators that the composition root hands in, and how an endpoint gets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, cast

from fastapi import Depends, Request

from index.metrics import Metrics
from index.models.base import Embedder
from index.types import DocumentEvent, Inbox

from .history import History
from .problems import ReadOnly
from .readers import Readers
from .waiting import Staleness


class Pushed(NamedTuple):
    """A body that somebody sent without knowing what an event is."""

    namespace: str
    media_type: str
    """In small letters, without parameters."""
    charset: str
    """What the sender says of its letters; "" where nothing."""
    body: bytes
    id: str
    """"" leaves it to the body."""
    title: str


class Received(NamedTuple):
    """What became of it, all of it durable."""

    events: Sequence[DocumentEvent]
    tokens: Sequence[str]
    """One for each event."""
    refused: Sequence[tuple[str, str]]
    """Place and reason of every item that is no document; where there are events too, it is in the dead letters."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything the service reads from and writes to. All of it is called from several threads at once."""

    readers: Readers
    """Started by whoever made them, so that snapshots stay fresh."""
    embedders: Callable[[str], Embedder]
    """Fingerprint of an index's embedder -> what embeds questions to that index; quick, whatever the model is."""
    decode: Callable[[dict[str, Any]], DocumentEvent]
    """The fields of an event, checked. Raises InvalidEvent."""
    inbox: Inbox | None
    """Accepts events; None where this service only reads."""
    history: History
    """Over the same readers."""
    staleness: Staleness
    dead_letters: Callable[[], int | None]
    """How many wait; None where no log is at hand."""
    not_ready: Callable[[], str | None]
    """Why no work should be sent here; None when it may be."""
    metrics: Metrics
    receive: Callable[[Pushed], Received] | None = None
    """Reads a body and accepts what is in it; None where this service only reads. Raises InvalidEvent."""
    feeds: Callable[[], Mapping[str, Mapping[str, Any]]] = dict
    """Name -> what is known of every feed that was added."""
    rebuilding: Callable[[], Mapping[str, tuple[int, int]]] = dict
    """Documents done and documents in all, of every namespace that is being made anew."""
    max_wait: float = 30.0
    """Seconds that a question may wait for a write."""

    def receiving(self) -> Callable[[Pushed], Received]:
        """Raises ReadOnly where nothing can be received."""
        self.accepting()
        if self.receive is None:
            raise ReadOnly("this service takes no bodies but JSON", hint="PUT the document as JSON")
        return self.receive

    def accepting(self) -> Inbox:
        """Raises ReadOnly where there is no inbox."""
        if self.inbox is None:
            raise ReadOnly("this service only reads", hint="send documents to the service that writes")
        return self.inbox


def _parts(request: Request) -> Parts:
    return cast(Parts, request.app.state.parts)


PartsOf = Annotated[Parts, Depends(_parts)]
