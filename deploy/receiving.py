"""Pushed bodies on their way into the inbox."""

from __future__ import annotations

from collections.abc import Callable

from index.types import Inbox
from query.parts import Pushed, Received
from streams.events import Limits
from streams.feeds.base import Memory, Step
from streams.feeds.deliver import Delivery
from streams.feeds.push import MANY, document, documents
from streams.letter import Letters


def receiver(inbox: Inbox, letters: Letters, limits: Limits) -> Callable[[Pushed], Received]:
    """What reads a pushed body and accepts the documents in it; it raises InvalidEvent where its only one is invalid.

    Where some items are documents, the others go to the dead letters; where none is, nothing is stored.
    """

    def receive(pushed: Pushed) -> Received:
        if pushed.media_type in MANY:
            steps = list(documents(pushed.body, pushed.media_type, pushed.namespace, limits))
        else:
            event = document(
                pushed.body,
                pushed.media_type,
                pushed.namespace,
                id=pushed.id,
                title=pushed.title,
                charset=pushed.charset,
                limits=limits,
            )
            steps = [Step((event,))]
        refused = [(item.place, item.reason) for step in steps for item in step.rejected]
        if not any(step.events for step in steps):
            return Received([], [], refused)
        # Nothing is remembered: whoever pushes knows what was acknowledged, and sends the rest again.
        delivered = Delivery(inbox, letters, pushed.namespace, Memory()).deliver(steps)
        return Received(delivered.events, delivered.tokens, refused)

    return receive
