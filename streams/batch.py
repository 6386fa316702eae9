"""One batch of a namespace, come what may: committed whole, in halves, or without the event that cannot be indexed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from index.errors import GistreamError, ModelHeld, StoreError, WriterError
from index.metrics import Metrics
from index.plan import Changes
from index.types import Accepted

from .apply import Applied, apply
from .chunk import ChunkConfig
from .events import encode
from .lane import Lane
from .letter import DeadLetter, Letters
from .position import reflected


def is_fault_of_the_event(error: Exception) -> bool:
    """Whether an event that led to this can never be indexed; otherwise a store, a model or another writer is the
    cause, and it waits.
    """
    if isinstance(error, WriterError | StoreError | ModelHeld | OSError):
        return False
    return not (isinstance(error, GistreamError) and error.recoverable)


OnBatch = Callable[[str, Applied], None]
"""Told the namespace, and what became of a batch that was committed."""


class Batches:
    """Applies batches, counts what became of them, and puts events that cannot be indexed among the dead letters."""

    def __init__(
        self,
        chunker: ChunkConfig,
        letters: Letters,
        metrics: Metrics,
        clock: Callable[[], int],
        on_batch: OnBatch,
        *,
        replayed: bool = False,
    ) -> None:
        """`clock` gives microseconds since 1970: the clock that stamped the events.

        `replayed`: the events were visible before, so that their age is nobody's freshness.
        """
        self._chunker = chunker
        self._letters = letters
        self._metrics = metrics
        self._clock = clock
        self._on_batch = on_batch
        self._replayed = replayed

    def apply(self, name: str, lane: Lane, batch: Sequence[Accepted]) -> None:
        """Commit a batch; where it cannot be, commit its halves; a single event that cannot be is refused.

        Raises what is no fault of the events: a store that fails, a model that is away or held, another writer.
        """
        try:
            applied = apply(lane.opened.writer, name, batch, self._chunker, lane.opened.understand)
        except Exception as error:
            if not is_fault_of_the_event(error):
                raise
            if len(batch) > 1:
                middle = len(batch) // 2
                self.apply(name, lane, batch[:middle])
                self.apply(name, lane, batch[middle:])
                return
            self._refuse(name, lane, batch[0], error)
            return
        lane.grew(applied)
        self._count(batch, applied)
        self._on_batch(name, applied)

    def _refuse(self, name: str, lane: Lane, accepted: Accepted, error: Exception) -> None:
        """Put an event that cannot be indexed among the dead letters, and go on behind it."""
        source, position = next(iter(accepted.places.items()), (None, None))
        letter = DeadLetter(
            source or "rebuild",
            "apply",
            f"{type(error).__name__}: {error}",
            encode(accepted.event),
            position=position,
            namespace=name,
            id=accepted.event.id,
        )
        self._letters.put(letter)
        writer = lane.opened.writer
        writer.commit(Changes(), reflected([accepted], writer.manifest.positions), accepted.stamp)
        self._metrics.count("gistream_events_dead_lettered_total", step="apply")
        self._metrics.count("gistream_commits_total")

    def _count(self, batch: Sequence[Accepted], applied: Applied) -> None:
        metrics, moment = self._metrics, self._clock()
        metrics.count("gistream_commits_total")
        metrics.count("gistream_events_superseded_total", applied.superseded)
        metrics.count("gistream_passages_extracted_total", applied.extracted)
        metrics.count("gistream_passages_reused_total", applied.reused)
        metrics.observe("gistream_batch_documents", applied.events)
        metrics.observe("gistream_commit_seconds", applied.commit_seconds)
        for accepted in () if self._replayed else batch:
            # A clock that was set back has stamps in its future.
            metrics.observe("gistream_freshness_seconds", max(0, moment - accepted.stamp) / 1e6)
