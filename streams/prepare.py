"""The understanding stage: what a model has to say about an event's passages is bought, kept, and then told of."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from index.errors import GistreamError
from index.home import Home
from index.metrics import Metrics
from index.plan import texts_of
from index.types import Accepted, Passage

from .ahead import ROUNDS
from .apply import passages_of
from .extract.base import PaidExtractor, Text
from .letter import Letters
from .pipeline import Pipeline, understanding_of
from .trouble import PAUSES, Troubles
from .understand import Understood
from .window import Entry, Window, events_of
from .wire import document_record

MOST_AT_ONCE: Final = 256
"""Events that are told of together."""
MOST_EMBEDDED: Final = 64
"""Passages that are embedded in one call, where no extractor bounds them."""
MOST_OPEN: Final = 64
"""Namespaces whose understanding is held open."""

_POLL_SECONDS = 0.005
_IDLE_SECONDS = 0.2

Publish = Callable[[Sequence[Accepted]], None]
"""Tells the appliers of events, in this order; returns once that is durable, and raises GistreamError where not."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Begun:
    """An event whose passages are being read."""

    entry: Entry
    passages: Sequence[Passage]

    @property
    def texts(self) -> list[Text]:
        return [(passage.title, passage.text) for passage in self.passages]


class Preparer:
    """Understands the events of a window. Namespaces take turns, and the events of each are told of in their order.

    As many passages are read at a time as the extractor reads, whichever events they are of. Where nothing is kept of
    what a pipeline understands, since its models cost nothing, the applier does it all and events just pass. Fit for
    one thread: its own, once `start` was called.
    """

    def __init__(
        self, home: Home, window: Window, pipeline: Pipeline, letters: Letters, publish: Publish, metrics: Metrics
    ) -> None:
        self.error: Exception | None = None
        """What stopped the thread; None while all is well."""
        self.troubles = Troubles()
        """What keeps single namespaces from being understood; they are tried again while the others go on."""
        self._home = home
        self._window = window
        self._pipeline = pipeline
        self._letters = letters
        self._publish = publish
        self._metrics = metrics
        extractor = pipeline.extractor
        self._most = ROUNDS * extractor.concurrency if isinstance(extractor, PaidExtractor) else MOST_EMBEDDED
        self._begun: defaultdict[str, deque[_Begun]] = defaultdict(deque)
        self._open: OrderedDict[str, Understood] = OrderedDict()
        self._unsent: list[tuple[str, list[Entry]]] = []
        self._failures = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gistream-preparer", daemon=True)

    @property
    def durable(self) -> None:
        """What was told of is on the brokers' disks."""
        return None

    @property
    def is_held_up(self) -> bool:
        """Whether a model or the broker is away."""
        return bool(self.troubles) or self._failures > 0

    def start(self) -> None:
        """Work in a thread of its own until `close`; what stops it is kept in `error`."""
        self._thread.start()

    def close(self) -> None:
        """Finish what is being told of, and let go; what was bought is kept, and what was not told of comes again."""
        self._stopping.set()
        self._window.wake()
        if self._thread.is_alive():
            self._thread.join()
        for known in self._open.values():
            known.close()
        self._open.clear()

    def step(self) -> bool:
        """Begin what there is room for, and tell of what is understood; False if there was nothing to tell."""
        self._begin()
        self._unsent += self._finished()
        if not self._unsent:
            return False
        try:
            self._publish([accepted for _, entries in self._unsent for accepted in events_of(entries)])
        except GistreamError as error:
            if not error.recoverable:
                raise
            # Nothing that comes later may be told of before these.
            pause = PAUSES[min(self._failures, len(PAUSES) - 1)]
            _log.warning("%d understood events are sent again in %.1f s: %s", len(self._unsent), pause, error)
            self._failures += 1
            self._stopping.wait(pause)
            return True
        self._failures = 0
        for name, entries in self._unsent:
            self._window.finish(name, len(entries))
        self._unsent.clear()
        return True

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                # What comes from here on ends the wait.
                self._window.news()
                if not self.step():
                    if any(self._begun.values()):
                        self._stopping.wait(_POLL_SECONDS)
                    else:
                        self._window.wait(_IDLE_SECONDS)
        except Exception as error:
            self.error = error

    def _begin(self) -> None:
        """Have passages read of one event of each namespace after the other, until enough are under way."""
        names = deque(name for name in self._window.names() if not self.troubles.waits(name))
        begun = sum(map(len, self._begun.values()))
        while names and begun < MOST_AT_ONCE and self._passages_under_way() < self._most:
            name = names.popleft()
            unsent = sum(len(entries) for sent, entries in self._unsent if sent == name)
            for entry in self._window.peek(name, unsent + len(self._begun[name]), 1):
                try:
                    self._begun[name].append(self._started(name, entry))
                except (GistreamError, OSError) as error:
                    self._in_trouble(name, error)
                else:
                    begun += 1
                    names.append(name)

    def _started(self, name: str, entry: Entry) -> _Begun:
        if not self._pipeline.keeps:
            return _Begun(entry, ())
        passages = [
            passage for accepted in events_of([entry]) for passage in passages_of(accepted, self._pipeline.chunker)
        ]
        begun = _Begun(entry, passages)
        if (reading := self._known(name).reading) is not None:
            reading.begin(begun.texts)
        return begun

    def _passages_under_way(self) -> int:
        return sum(len(begun.passages) for line in self._begun.values() for begun in line)

    def _finished(self) -> list[tuple[str, list[Entry]]]:
        """Of every namespace the events at its head that are understood."""
        found = []
        for name in [name for name, line in self._begun.items() if line]:
            line = self._begun[name]
            ready = []
            try:
                for begun in line:
                    if not self._is_read(name, begun):
                        break
                    ready.append(begun)
                done = self._understood(name, ready)
            except (GistreamError, OSError) as error:
                self._in_trouble(name, error)
                continue
            for _ in range(done):
                line.popleft()
            if done:
                found.append((name, [begun.entry for begun in ready[:done]]))
                self.troubles.over(name)
        for name in [name for name, line in self._begun.items() if not line]:
            del self._begun[name]
        return found

    def _is_read(self, name: str, begun: _Begun) -> bool:
        if not begun.passages:
            return True
        reading = self._known(name).reading
        return reading is None or not reading.waits_for(begun.texts)

    def _understood(self, name: str, ready: Sequence[_Begun]) -> int:
        """Have everything about these events kept; returns of how many, from the first on."""
        try:
            self._keep(name, ready)
        except (GistreamError, OSError):
            raise
        except Exception as error:
            if len(ready) > 1:
                return self._understood(name, ready[:1])
            self._refuse(ready[0].entry, error)
        return len(ready)

    def _keep(self, name: str, ready: Sequence[_Begun]) -> None:
        if not any(begun.passages for begun in ready):
            return
        known = self._known(name)
        passages = [passage for begun in ready for passage in begun.passages]
        if known.reading is not None:
            texts = [text for begun in ready for text in begun.texts]
            passages = [
                replace(passage, extraction=extraction)
                for passage, extraction in zip(passages, known.reading(texts), strict=True)
            ]
        if known.embed is not None:
            known.embed(texts_of(passages, self._pipeline.fingerprint))
        self._metrics.count("gistream_passages_understood_total", len(passages))

    def _refuse(self, entry: Entry, error: Exception) -> None:
        """Put an event that cannot be understood among the dead letters; the applier is told of none."""
        [accepted] = events_of([entry])
        [(source, position)] = accepted.places.items()
        _, value = document_record(accepted.event)
        self._letters.put(
            source,
            "understand",
            f"{type(error).__name__}: {error}",
            value or b"",
            position=position,
            namespace=accepted.event.namespace,
            id=accepted.event.id,
        )
        self._metrics.count("gistream_events_dead_lettered_total", step="understand")
        entry.accepted = None

    def _known(self, name: str) -> Understood:
        if name not in self._open:
            idle = [other for other in self._open if not self._begun.get(other)]
            while len(self._open) >= MOST_OPEN and idle:
                self._open.pop(idle.pop(0)).close()
            self._open[name] = understanding_of(self._home, name, self._pipeline)
        self._open.move_to_end(name)
        return self._open[name]

    def _in_trouble(self, name: str, error: Exception) -> None:
        """Begin again with a namespace, later; what was bought for it is kept."""
        self.troubles.note(name, error)
        self._begun.pop(name, None)
        if (known := self._open.pop(name, None)) is not None:
            known.close()
