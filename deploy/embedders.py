"""Which model embeds a question: the one that made the index it is put to, whatever the settings name by now.

While a namespace is rebuilt with another model both are needed side by side, also in a process that only reads. A
fingerprint names its model well enough to build it again, as long as its files or its endpoint are still there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from index.models.base import Embedder
from index.models.remembered import Remembering
from index.types import Role

from .assembly import build_embedder
from .settings import Settings


class Embedders:
    """Embedders of questions by the fingerprint of the index. Any number of threads may ask."""

    def __init__(self, settings: Settings, present: Embedder, measure: Callable[[Embedder], Embedder]) -> None:
        """`present` is the embedder that `settings` name; `measure` wraps the others that are built."""
        self._settings = settings
        self._present = present
        self._measure = measure
        self._lock = Lock()
        self._known: dict[str, Embedder] = {}

    def __call__(self, made: str) -> Embedder:
        """The embedder of that fingerprint; that of the settings where it cannot be had, which `retrieve` refuses.

        Nothing is loaded or asked before the embedder is looked at, and then ModelError is raised where that fails: a
        question that needs no vector must not wait for a model.
        """
        with self._lock:
            return self._known.setdefault(made, Deferred(partial(self._build, made)))

    def _build(self, made: str) -> Embedder:
        if made.partition(":")[0] != self._settings.embedder or self._present.fingerprint != made:
            for settings in _former(self._settings, made):
                found = build_embedder(settings)
                if found.fingerprint == made:
                    return _remembering(self._measure(found))
        return _remembering(self._present)


class Deferred:
    """An embedder that is built when it is first looked at; where that fails, it is tried again."""

    def __init__(self, build: Callable[[], Embedder]) -> None:
        self._build = build
        self._lock = Lock()
        self._built: Embedder | None = None

    @property
    def fingerprint(self) -> str:
        return self._inside.fingerprint

    @property
    def dimensions(self) -> int:
        return self._inside.dimensions

    @property
    def alias_threshold(self) -> float | None:
        return self._inside.alias_threshold

    @property
    def remote(self) -> bool:
        return self._inside.remote

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        """See Embedder."""
        return self._inside.embed(texts, role)

    @property
    def _inside(self) -> Embedder:
        if self._built is None:
            with self._lock:
                if self._built is None:
                    self._built = self._build()
        return self._built


def _remembering(embedder: Embedder) -> Embedder:
    """None of the embedders that settings can name knows roles, as `Remembering` demands."""
    return Remembering(embedder) if embedder.remote else embedder


def _former(settings: Settings, made: str) -> Iterator[Settings]:
    """Settings that may build the embedder of a fingerprint, most likely first."""
    kind, _, rest = made.partition(":")
    if kind == "hashing":
        dimensions = int(rest.rpartition(":")[2])
        yield settings.model_copy(update={"embedder": kind, "embedding_dimensions": dimensions})
    elif kind == "local":
        folder = settings.former_embedding_folder or settings.embedding_folder
        model = rest.rsplit(":", 3)[0]
        change = {"embedder": kind, "embedding_model": model, "embedding_folder": folder}
        yield settings.model_copy(update={**change, "embedding_dimensions": None})
    elif kind == "openai":
        model, length, _ = rest.rsplit(":", 2)
        address = settings.former_embedding_base_url or settings.embedding_base_url
        change = {"embedder": kind, "embedding_model": model, "embedding_base_url": address}
        # Most endpoints refuse to be told dimensions, and the fingerprint does not know whether they were.
        for told in (None, int(length)):
            yield settings.model_copy(update={**change, "embedding_dimensions": told})
