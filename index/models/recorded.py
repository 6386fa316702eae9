"""An embedder that looks vectors up: recordings of a model's answers, replayed without the model."""

from __future__ import annotations

import hashlib
import zipfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingRecording, ModelError
from ..types import Role
from .base import ALIAS_THRESHOLD, Embedder, unit_rows

_DIGEST = 32


class Recording:
    """Vectors of known texts; texts are kept as their sha256 alone, sorted and searched in place."""

    def __init__(self, keys: bytes, row: NDArray[np.integer[Any]], vectors: NDArray[np.floating[Any]]) -> None:
        """`keys`: M ascending digests of 32 bytes, joined; `row` (M,): the row of `vectors` (N, d) of each."""
        self._keys = keys
        self._row = row
        self.vectors = vectors

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Read an .npz file: `keys` uint8 (M, 32), sha256 of the exact UTF-8 text, ascending; `row` (M,); `vec` (N, d).

        Raises ModelError, with the path, when the file is not such a recording.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                keys, row, vectors = arrays["keys"], arrays["row"], arrays["vec"]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise _unreadable(path, str(error)) from error
        if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != _DIGEST or row.shape != keys.shape[:1]:
            raise _unreadable(path, f"keys {keys.dtype}{keys.shape} and row {row.shape} do not fit together")
        if vectors.ndim != 2 or (len(row) and not 0 <= row.min() <= row.max() < len(vectors)):
            raise _unreadable(path, f"row points outside of vec {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise _unreadable(path, "vec holds numbers that are not finite")
        head = np.ascontiguousarray(keys[:, :8]).view(">u8")[:, 0]
        if np.any(head[1:] < head[:-1]):
            raise _unreadable(path, "keys are not ascending")
        return cls(keys.tobytes(), row, vectors)

    @classmethod
    def of(cls, vectors: Mapping[str, Sequence[float]]) -> Recording:
        """A recording held in the program, for worked examples: text -> vector of any length."""
        digests = [_digest(text) for text in vectors]
        order = sorted(range(len(digests)), key=digests.__getitem__)
        table = np.array(list(vectors.values()), dtype=np.float64)
        return cls(b"".join(digests[place] for place in order), np.array(order, dtype=np.int64), table)

    def __len__(self) -> int:
        return len(self._row)

    def find(self, text: str) -> int:
        """Row of `vectors` that belongs to exactly `text`, or -1."""
        digest = _digest(text)
        place = bisect_left(range(len(self)), digest, key=self._key)
        return int(self._row[place]) if place < len(self) and self._key(place) == digest else -1

    def _key(self, place: int) -> bytes:
        return self._keys[place * _DIGEST : (place + 1) * _DIGEST]


class RecordedEmbedder:
    """Replays recordings of one model; texts that were not recorded go to `fallback`, or raise MissingRecording.

    A text is looked up exactly first, then in lower case: recordings of names and facts hold both spellings of an
    uncased model. `by_role` holds vectors that a question has in one role only; every role falls back on `recordings`.
    The fingerprint is the model's, not the files': recordings of one model are interchangeable, and so is the model
    itself as `fallback`. `remote` is the fallback's: what it answers is worth keeping, and keeping a recorded vector
    beside it does no harm.
    """

    def __init__(
        self,
        recordings: Sequence[Recording],
        *,
        model: str,
        by_role: Mapping[Role, Recording] | None = None,
        fallback: Embedder | None = None,
        written: Mapping[str, str] | None = None,
        alias_threshold: float | None = ALIAS_THRESHOLD,
    ) -> None:
        """`model` names what was recorded. Raises ModelError when the dimensions of the parts differ.

        `written`: text -> how it stood when it was recorded, where it was cleaned since: white space means nothing to
        a model.
        """
        self._recordings = tuple(recordings)
        self._by_role = dict(by_role or {})
        self._fallback = fallback
        self._written = written or {}
        every = (*self._recordings, *self._by_role.values())
        sizes = {recording.vectors.shape[1] for recording in every if len(recording)}
        if fallback is not None:
            sizes.add(fallback.dimensions)
        if len(sizes) != 1:
            raise ModelError(
                f"the recordings of {model!r} have {sorted(sizes) or 'no'} dimensions",
                hint="Give recordings (and a fallback) of one and the same model",
            )
        self.dimensions: int = sizes.pop()
        self.fingerprint = f"recorded:{model}:{self.dimensions}"
        self.alias_threshold = alias_threshold
        self.remote = fallback is not None and fallback.remote

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        """See Embedder. Raises one MissingRecording that counts every text that is not recorded."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        missing: list[int] = []
        for place, text in enumerate(texts):
            if not text.strip():
                continue
            found = next(self._vectors(text, role), None)
            if found is None:
                missing.append(place)
            else:
                vectors[place] = found
        vectors = unit_rows(vectors)
        if missing:
            vectors[missing] = self._ask([texts[place] for place in missing], len(texts), role)
        return vectors

    def _vectors(self, text: str, role: Role) -> Iterator[NDArray[np.floating[Any]]]:
        own = self._by_role.get(role)
        recordings = self._recordings if own is None else (own, *self._recordings)
        recorded = self._written.get(text, text)
        for spelling in dict.fromkeys((text, text.lower(), recorded, recorded.lower())):
            for recording in recordings:
                row = recording.find(spelling)
                if row >= 0:
                    yield recording.vectors[row]

    def _ask(self, missing: list[str], asked: int, role: Role) -> NDArray[np.float32]:
        if self._fallback is None:
            raise MissingRecording(
                f"{len(missing)} of {asked} texts are not recorded ({self.fingerprint}), such as {missing[0][:80]!r}",
                hint="Record them with the same model, or give an endpoint of that model as fallback",
            )
        return self._fallback.embed(missing, role)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _unreadable(path: str | Path, what: str) -> ModelError:
    return ModelError(
        f"{path} is not a recording of vectors: {what}", hint="Copy the .npz file again, or record it anew"
    )
