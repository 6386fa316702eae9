"""A folder whose files are documents: what came, changed, moved and went since it was last looked at."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Final

from index.errors import FeedError, InvalidEvent, NotFound
from index.types import DocumentEvent

from ..events import DEFAULT_LIMITS, Limits, validated
from .base import MAX_PAYLOAD, Memory, Rejected, Step
from .files import UNFIT, Content, Refused, Stamp, State, read, stamp_of
from .formats.base import Page, Unreadable
from .formats.loading import SUFFIXES, load, most_bytes
from .walk import Walk, walk
from .watch import Watch

SETTLE_SECONDS: Final = 0.5
RESCAN_SECONDS: Final = 60.0
_PAUSE: Final = 8
"""Times as long as it took to look through a folder, it is left alone."""


class Folder:
    """Every file of a known suffix (formats/loading.py) below a folder is one document.

    Its id is `prefix` and its place, the path below `root` with `/`; its title what its format gives, or else its name
    without suffix; its event time the file's time of change, and `metadata["folder"]` the folder it lies in. Hidden
    files and folders are passed over. A link is read where it leads to a file below `root`.

    The truth is the scan of the whole folder; being told of changes only makes it come sooner. A file that appears,
    changes or goes is believed once it has stayed so for `settle_seconds`, so a half-written one is not read, nor
    does an editor that puts a new file in place of the old delete a document. A file that got another name is
    one step, the new document before the end of the old: for one commit both may be there, but never neither.
    A file that cannot be opened keeps its document and is tried again; one that is no text any more loses it.
    """

    def __init__(
        self,
        root: Path,
        namespace: str,
        *,
        prefix: str = "",
        limits: Limits = DEFAULT_LIMITS,
        settle_seconds: float = 0.0,
        rescan_seconds: float = RESCAN_SECONDS,
    ) -> None:
        self.name = str(root)
        self.skipped: Mapping[str, int] = {}
        self._root = root
        self._namespace = namespace
        self._prefix = prefix
        self._limits = limits
        self._settle = settle_seconds
        self._rescan = rescan_seconds
        self._unsettled: dict[str, tuple[Stamp | None, float]] = {}
        """By place what was seen and since when; None where a file has gone."""
        self._took = 0.0
        """Seconds that the last look through the folder took, reading aside."""
        self._watch: Watch | None = None

    def poll(self, memory: Memory) -> Iterator[Step]:
        """See Feed. A folder that is empty and another one than before (nothing mounted there) is a FeedError."""
        if (identity := self._identity()) != memory.cursor:
            # One that came in the place of another is not watched yet.
            self._watch = None
        started = time.monotonic()
        found = walk(self._root, SUFFIXES)
        self._took = time.monotonic() - started
        self.skipped = found.skipped
        if memory.cursor not in ("", identity) and memory.items and not found.files:
            raise FeedError(
                f"the folder {self.name} is empty, and not the one that was read before",
                hint="mount it again; if it is meant to be empty, remove this feed and add it anew",
            )
        if memory.cursor != identity:
            yield Step(cursor=identity)
        yield from self._changes(found, memory)

    def wait(self, stop: Event) -> None:
        """Until something in the folder moves, something seen has settled, or it is time to scan."""
        if self._watch is None:
            self._watch = Watch(self._root)
        # A scan of many files must not follow scan without pause where one of them is written to all the time.
        stop.wait(min(_PAUSE * self._took, self._rescan))
        self._watch.wait(stop, self._settle if self._unsettled else self._rescan)

    def _changes(self, found: Walk, memory: Memory) -> Iterator[Step]:
        gone = _Gone(
            {
                id: State.parse(text)
                for id, text in memory.items.items()
                if (place := id.removeprefix(self._prefix)) not in found.files
                and not (place.endswith("/") and place[:-1] in found.closed)
                and not found.may_hold(place)
            }
        )
        former, self._unsettled = self._unsettled, {}
        for place, reason in found.closed.items():
            yield from self._closed(place, reason, memory)
        for place, path in found.files.items():
            id = self._prefix + place
            known = State.parse(memory.items[id]) if id in memory.items else None
            stamp = stamp_of(path)
            if known is not None and known.digest and known.stamp == stamp:
                continue
            if stamp is None and not path.is_symlink():
                continue  # It went this moment; the next look will tell.
            if not gone.expects(stamp) and not self._is_settled(place, stamp, former):
                continue
            step = self._file(place, path, known, gone)
            if step is None:
                self._unsettled[place] = (stamp, time.monotonic())
            else:
                yield step
        for id, state in gone.states.items():
            if not state.held:
                yield Step(items={id: None})
            elif self._is_settled(id.removeprefix(self._prefix), None, former):
                yield Step((self._deletion(id),), items={id: None})

    def _file(self, place: str, path: Path, known: State | None, gone: _Gone) -> Step | None:
        """What there is to say of a file that is new or changed; None where it is being written."""
        id = self._prefix + place
        held = known is not None and known.held
        media_type = SUFFIXES[path.suffix.lower()]
        data = b""
        try:
            content = read(path, os.path.realpath(self._root), most_bytes(media_type, self._limits))
            if self._settle and not content.is_whole:
                return None
            if known is not None and known.digest == content.digest:
                return Step(items={id: str(known._replace(stamp=content.stamp))})
            data = content.data
            event = self._document(path, content, load(data, media_type, self._limits))
        except Refused as error:
            if error.may_pass:
                state = State(stamp_of(path), "", held, error.reason)
            else:
                state = State(stamp_of(path), UNFIT, False, error.reason)
            data = error.data
        except (Unreadable, InvalidEvent) as error:
            state = State(content.stamp, content.digest, False, str(error))
        else:
            step = Step((event,), items={id: str(State(content.stamp, content.digest, True))})
            former = gone.take(content)
            if former is None:
                return step
            return Step((*step.events, self._deletion(former)), items={**step.items, former: None})
        if state == known:
            return Step()
        told = known is not None and (known.fault, known.digest) == (state.fault, state.digest)
        rejected = () if told else (self._rejected(place, state.fault, data),)
        events = (self._deletion(id),) if held and not state.held else ()
        return Step(events, rejected, {id: str(state)})

    def _document(self, path: Path, content: Content, page: Page) -> DocumentEvent:
        # Not `place`: a name that is no UTF-8 is shown there with escapes, and is no valid id.
        place = path.relative_to(self._root).as_posix()
        fields = {
            "namespace": self._namespace,
            "id": self._prefix + place,
            "title": page.title or path.stem,
            "text": page.text,
            "metadata": {"folder": place.rpartition("/")[0]},
            "event_time": datetime.fromtimestamp(content.stamp.modified / 1e9, UTC).isoformat(),
        }
        return validated(fields, self._limits)

    def _closed(self, place: str, reason: str, memory: Memory) -> Iterator[Step]:
        id, state = f"{self._prefix}{place}/", str(State(None, "", False, reason))
        if memory.items.get(id) != state:
            reason = f"this folder cannot be listed: {reason}; its documents stay as they are"
            yield Step((), (self._rejected(place or ".", reason),), {id: state})

    def _is_settled(self, place: str, stamp: Stamp | None, former: Mapping[str, tuple[Stamp | None, float]]) -> bool:
        """Whether a file has been so for `settle` seconds, by its own time of change or by what was seen before."""
        if not self._settle:
            return True
        if stamp is not None and time.time() - stamp.changed / 1e9 >= self._settle:
            return True
        now = time.monotonic()
        seen, since = former.get(place, (stamp, now))
        if seen == stamp and now - since >= self._settle:
            return True
        self._unsettled[place] = (stamp, since if seen == stamp else now)
        return False

    def _identity(self) -> str:
        """Which folder it is, whatever its name. Raises NotFound."""
        try:
            status = self._root.stat()
        except OSError:
            status = None
        if status is None or not self._root.is_dir():
            raise NotFound(f"there is no folder {self.name}", hint="name a folder of text, Markdown, HTML or PDF files")
        return f"{status.st_dev}:{status.st_ino}"

    def _deletion(self, id: str) -> DocumentEvent:
        return DocumentEvent(op="delete", namespace=self._namespace, id=id)

    def _rejected(self, place: str, reason: str, data: bytes = b"") -> Rejected:
        return Rejected(self.name, place, reason, data[:MAX_PAYLOAD])


class _Gone:
    """Documents whose files are no more where they were; each may turn up under another name."""

    def __init__(self, states: dict[str, State]) -> None:
        self.states = states
        self._moved: set[tuple[int, int, int]] = set()
        self._by_digest: dict[str, list[str]] = {}
        for id, state in states.items():
            if state.held and state.stamp is not None:
                self._moved.add(state.stamp.moved())
                self._by_digest.setdefault(state.digest, []).append(id)

    def expects(self, stamp: Stamp | None) -> bool:
        """Whether this is one of them under another name: it was whole then and is now."""
        return stamp is not None and stamp.moved() in self._moved

    def take(self, content: Content) -> str | None:
        """The id of a document with this content, which is then no longer among them."""
        if not (ids := self._by_digest.get(content.digest)):
            return None
        id = ids.pop()
        del self.states[id]
        return id
