"""What passages may be filtered by: event time and metadata by passage number, read when first asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .errors import StoreError
from .numbers import Numbers

Int64s = NDArray[np.int64]
Mask = NDArray[np.bool_]
"""By passage number: true or false for each that a snapshot knows."""

NO_TIME: Final = np.iinfo(np.int64).min
"""The event time of a passage that has none."""
_REMEMBERED = 32
"""Tests whose verdicts are kept; each is one byte a distinct value."""
_SPARE = 10_000


class Distinct:
    """Distinct texts, numbered in order of sight. Passages share metadata, so a test looks at each text once only.

    Any number of threads may use it.
    """

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._texts: list[str] = []
        self._verdicts: OrderedDict[Hashable, Mask] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._texts)

    def assign(self, texts: pa.ChunkedArray) -> Int64s:
        """Numbers (m,) of texts (m,); unseen ones get the next."""
        coded = texts.combine_chunks().dictionary_encode()
        with self._lock:
            numbers = np.empty(len(coded.dictionary), np.int64)
            for at, text in enumerate(coded.dictionary.to_pylist()):
                numbers[at] = self._number.setdefault(text, len(self._texts))
                if numbers[at] == len(self._texts):
                    self._texts.append(text)
        places: Int64s = coded.indices.to_numpy(zero_copy_only=False)
        return numbers[places]

    def passing(self, name: Hashable, test: Callable[[str], bool]) -> Mask:
        """By number: whether the text passes. `name` says which test this is: no text is put to it twice."""
        with self._lock:
            known = self._verdicts.pop(name, np.zeros(0, np.bool_))
            fresh = np.fromiter(map(test, self._texts[len(known) :]), np.bool_)
            self._verdicts[name] = np.concatenate((known, fresh)) if len(fresh) else known
            while len(self._verdicts) > _REMEMBERED:
                self._verdicts.popitem(last=False)
            return self._verdicts[name]


@dataclass(frozen=True, slots=True)
class Attributes:
    """Columns of one snapshot by passage number; those of passages that are gone mean nothing."""

    event_times: Int64s
    """Microseconds since 1970, NO_TIME where there is none."""
    metadata: Int64s
    """Number of the metadata (canonical JSON) among `values`."""
    values: Distinct

    def having(self, name: Hashable, test: Callable[[str], bool]) -> Mask:
        """Passages whose metadata passes a test; `name` says which one it is."""
        return self.values.passing(name, test)[self.metadata]


class AttributeReader:
    """The attributes of a reader's successive snapshots: the first costs a look at every passage, the next the change.

    Any number of threads may ask.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._newest = -1
        self._known = Attributes(np.empty(0, np.int64), np.empty(0, np.int64), Distinct())
        self._fragments: frozenset[int] = frozenset()

    def read(self, number: int, passages: Any, keys: Numbers, length: int) -> Attributes:
        """Attributes of snapshot `number`: `passages` is its table, `keys` number its passages, `length` of them.

        Raises StoreError where the table cannot be read.
        """
        with self._lock:
            # One snapshot reached on two ways may know of more numbers the second time.
            if number == self._newest and length == len(self._known.event_times):
                return self._known
            fragments = frozenset(fragment.fragment_id for fragment in passages.get_fragments())
            if number < self._newest:
                # A step back may bring back rows in fragments that are known, so all are looked at.
                return _added(_nothing(self._known.values), passages, fragments, keys, length)
            known, unseen = self._known, fragments - self._fragments
            if len(known.values) > 2 * length + _SPARE:
                known, unseen = _nothing(Distinct()), fragments
            self._known = _added(known, passages, unseen, keys, length)
            self._newest, self._fragments = number, fragments
            return self._known


def _nothing(values: Distinct) -> Attributes:
    return Attributes(np.empty(0, np.int64), np.empty(0, np.int64), values)


def _added(known: Attributes, passages: Any, unseen: frozenset[int], keys: Numbers, length: int) -> Attributes:
    """With the rows of `unseen` fragments: a row never changes where it is, it moves to a new fragment."""
    event_times, metadata = np.full(length, NO_TIME, np.int64), np.zeros(length, np.int64)
    # Looking back may have given numbers that the newer snapshot, held before, does not know.
    kept = min(length, len(known.event_times))
    event_times[:kept] = known.event_times[:kept]
    metadata[:kept] = known.metadata[:kept]
    fragments = [fragment for fragment in passages.get_fragments() if fragment.fragment_id in unseen]
    if fragments:
        try:
            rows = passages.scanner(columns=["key", "event_time", "metadata"], fragments=fragments).to_table()
        except (OSError, RuntimeError, ValueError) as error:
            raise StoreError(f"{passages.uri} cannot be read at version {passages.version}: {error}") from error
        numbers = keys.of(rows["key"].to_pylist())
        event_times[numbers] = rows["event_time"].fill_null(NO_TIME).to_numpy()
        metadata[numbers] = known.values.assign(rows["metadata"])
    return Attributes(event_times, metadata, known.values)
