"""An embedder behind any endpoint that speaks OpenAI's /v1/embeddings."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from openai import APIConnectionError, APIStatusError, OpenAI, OpenAIError, omit

from ..errors import ModelError, ModelUnavailable
from ..types import Role
from .base import ALIAS_THRESHOLD, unit_rows

DEFAULT_MODEL = "text-embedding-3-small"

_BAD_INPUT = (400, 413, 422)
"""Answers that blame the texts; after every other they may pass once the endpoint or its settings are mended."""
_HINTS = {
    400: "Is a text too long for the model, or does it not know `dimensions`?",
    401: "Check OPENAI_API_KEY",
    403: "Check OPENAI_API_KEY and what it may use",
    404: "Check GISTREAM_EMBEDDING_BASE_URL (it ends in /v1) and GISTREAM_EMBEDDING_MODEL",
    413: "Send less at once: a smaller batch",
}


class OpenAIEmbedder:
    """Asks an endpoint, in bounded batches, a bounded number at a time per call; equal texts are sent once.

    Texts longer than `longest` characters are cut there: endpoints refuse what is longer than their model reads. The
    endpoint's address is not part of the fingerprint: the same model may move.
    """

    remote = True

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str = "none",
        dimensions: int | None = None,
        alias_threshold: float | None = ALIAS_THRESHOLD,
        batch_texts: int = 128,
        batch_characters: int = 200_000,
        longest: int = 24_000,
        concurrency: int = 4,
        timeout: float = 30.0,
        max_retries: int = 3,
    ) -> None:
        """`dimensions` None: what the model gives, learnt by a first small call. `timeout` in seconds, for each try.

        Without `base_url` the client's default holds. A call that fails ends after (max_retries + 1) · timeout and the
        pauses between tries.
        """
        self.alias_threshold = alias_threshold
        self._model = model
        self._requested = dimensions
        self._batch_texts = batch_texts
        self._batch_characters = batch_characters
        self._longest = longest
        self._concurrency = concurrency
        self._client = OpenAI(base_url=base_url, api_key=api_key, timeout=timeout, max_retries=max_retries)
        # The client closes itself too late where the collector takes its sockets first.
        weakref.finalize(self, self._client.close)

    @cached_property
    def dimensions(self) -> int:
        """Given, or learnt from the endpoint once; raises what `embed` raises."""
        return self._requested or self._request(["dimensions"]).shape[1]

    @property
    def fingerprint(self) -> str:
        """Asks the endpoint where `dimensions` does."""
        return f"openai:{self._model}:{self.dimensions}:{self._longest}"

    def embed(self, texts: Sequence[str], role: Role = "text") -> NDArray[np.float32]:
        """See Embedder; blocks for the calls and their retries. Blank texts are never sent."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            if text.strip():
                places.setdefault(text[: self._longest], []).append(place)
        batches = list(self._batches(places))
        for batch, answer in zip(batches, self._answers(batches), strict=True):
            if answer.shape[1] != self.dimensions:
                raise self._refused(f"answered with {answer.shape[1]} dimensions instead of {self.dimensions}")
            for text, vector in zip(batch, unit_rows(answer), strict=True):
                vectors[places[text]] = vector
        return vectors

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            if batch and (len(batch) == self._batch_texts or size + len(text) > self._batch_characters):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        if batch:
            yield batch

    def _answers(self, batches: list[list[str]]) -> list[NDArray[np.float64]]:
        if len(batches) <= 1:
            return [self._request(batch) for batch in batches]
        # After a failure `map` drops the batches that still wait: they are not paid for.
        with ThreadPoolExecutor(min(self._concurrency, len(batches)), thread_name_prefix="embed") as pool:
            return list(pool.map(self._request, batches))

    def _request(self, batch: list[str]) -> NDArray[np.float64]:
        """Vectors (n, d) as the endpoint gave them, in the order of `batch`."""
        try:
            answer = self._client.embeddings.create(
                model=self._model,
                input=batch,
                dimensions=self._requested or omit,
                encoding_format="float",  # many compatible servers ignore base64, which the client would ask for
            )
            rows = sorted(answer.data, key=lambda row: row.index)
            if [row.index for row in rows] != list(range(len(batch))):
                raise self._refused(f"answered {len(rows)} vectors to {len(batch)} texts")
            vectors = np.array([row.embedding for row in rows], dtype=np.float64)
        except APIConnectionError as error:
            raise ModelUnavailable(
                f"the embedding endpoint {self._where} did not answer: {_short(error)}",
                hint="Check that it runs and that GISTREAM_EMBEDDING_BASE_URL points to it; then try again",
            ) from error
        except APIStatusError as error:
            hint = _HINTS.get(error.status_code, "Try again later, or lower the concurrency")
            kind = ModelError if error.status_code in _BAD_INPUT else ModelUnavailable
            raise kind(f"the embedding endpoint {self._where} answered {_short(error)}", hint=hint) from error
        except (OpenAIError, ValueError, TypeError, AttributeError) as error:
            # The client checks no answer against its own types: what is not an embedding fails in any of these ways.
            raise self._refused(f"did not answer with embeddings: {_short(error)}") from error
        if vectors.ndim != 2 or vectors.shape[1] == 0 or not np.isfinite(vectors).all():
            raise self._refused(f"answered with vectors that are no finite numbers, shape {vectors.shape}")
        return vectors

    @property
    def _where(self) -> str:
        return f"{self._client.base_url} (model {self._model!r})"

    def _refused(self, what: str) -> ModelError:
        return ModelUnavailable(
            f"the embedding endpoint {self._where} {what}", hint="Is it an endpoint for embeddings?"
        )


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
