"""Looking ahead: passages of the next batches are read while earlier ones are committed, so that no model idles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from index.types import Accepted

from .apply import foresee
from .chunk import ChunkConfig
from .extract.base import Extractor, PaidExtractor
from .lane import Foreseen, Lane
from .understand import Reading

ROUNDS = 2
"""Passages that are read ahead, in rounds of the extractor's concurrency: one under way, one that waits."""


MOST_BATCHES = 4
"""Batches of one namespace that are foreseen; where everything is known already, nothing else would stop it."""


class Ahead:
    """Begins to read what comes behind the batch whose turn it is: of other namespaces, and of the same one.

    A hint and no more. Its answers are found where every answer is found, so a batch is the same with it and without.
    """

    def __init__(
        self,
        extractor: Extractor,
        chunker: ChunkConfig,
        read: Callable[[str, int], list[Accepted]],
        open_lane: Callable[[str], Lane],
    ) -> None:
        """`read` gives a namespace's next batch after a position."""
        self._wanted = ROUNDS * extractor.concurrency if isinstance(extractor, PaidExtractor) else 0
        self._chunker = chunker
        self._read = read
        self._open = open_lane

    def look(self, names: Sequence[str]) -> None:
        """Begin with the passages of the batch that the first of `names` has now, and with enough of what follows.

        `names`: the namespaces with events waiting, in the order of their turns. Never raises: what is wrong is found
        again, and told, when its turn comes.
        """
        if not self._wanted:
            return
        readings: dict[str, Reading] = {}
        # More than this many cannot be needed, and each costs a look into the log.
        waiting = deque(names[: self._wanted])
        wanted = 0
        while waiting:
            name = waiting.popleft()
            if readings and sum(reading.under_way for reading in readings.values()) >= wanted:
                return
            try:
                lane = self._open(name)
                begun = self._begin(name, lane)
            except Exception:
                # Not told here, since nothing of it is lost: the turn of this namespace does the same again.
                continue
            if not readings:
                wanted = self._wanted + sum(one.passages for one in lane.foreseen[:1])
            if lane.opened.reading is not None:
                readings[name] = lane.opened.reading
            if begun:
                waiting.append(name)

    def _begin(self, name: str, lane: Lane) -> bool:
        """Begin with the next batch that was not foreseen yet; False where there is none, or enough."""
        lane.foreseen = [one for one in lane.foreseen if one.batch[-1].position > lane.position]
        if len(lane.foreseen) >= MOST_BATCHES or lane.opened.reading is None:
            return False
        earlier = [accepted for one in lane.foreseen for accepted in one.batch]
        batch = self._read(name, earlier[-1].position if earlier else lane.position)
        if not batch:
            return False
        passages = foresee(lane.opened.writer, name, earlier, batch, self._chunker)
        lane.foreseen.append(Foreseen(batch, len(passages)))
        lane.opened.reading.begin(passages)
        return True
