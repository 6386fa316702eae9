"""A question set on disk: passages that become documents, questions, and which of the passages answer them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from index.errors import NotFound
from index.keys import passage_key
from index.types import DocumentEvent, Key
from query.evaluate import Asked
from streams.events import validated


@dataclass(frozen=True, slots=True)
class Kit:
    """A question set on disk: passages.jsonl.gz, questions.jsonl.gz, perhaps extractions_NAME.jsonl.gz and
    ../embeddings/SET.*.npz.
    """

    folder: Path
    passages: Sequence[Mapping[str, Any]]
    questions: Sequence[Mapping[str, Any]]

    @classmethod
    def load(cls, folder: Path, limit: int | None = None) -> Kit:
        """Read a set; `limit` keeps the first questions only, never fewer passages.

        Raises NotFound where it is none.
        """
        return cls(
            folder, list(_rows(folder / "passages.jsonl.gz")), list(_rows(folder / "questions.jsonl.gz"))[:limit]
        )

    @property
    def namespace(self) -> str:
        return re.sub(r"[^a-z0-9._-]", "-", self.folder.resolve().name.lower())[:63] or "kit"

    @property
    def by_document(self) -> bool:
        """Whether gold names documents of several passages."""
        return any("gold_docs" in question for question in self.questions)

    def events(self) -> Iterator[DocumentEvent]:
        """One document per passage; what is no text of it becomes metadata, its timestamp the event time."""
        for row in self.passages:
            known = {"id", "title", "text", "timestamp", "sentences"}
            metadata = {name: value for name, value in row.items() if name not in known}
            fields = {
                "namespace": self.namespace,
                "id": row["id"],
                "title": row.get("title", ""),
                "text": row["text"],
                "metadata": metadata,
            }
            yield validated(fields | ({"event_time": row["timestamp"]} if row.get("timestamp") else {}))

    def names(self) -> dict[Key, str]:
        """What each passage of the index counts as: its own id, or that of its document."""
        name = "doc_id" if self.by_document else "id"
        return {
            passage_key(self.namespace, row["id"], row["text"], 0): str(row.get(name, row["id"]))
            for row in self.passages
        }

    def asked(self) -> list[Asked]:
        field = "gold_docs" if self.by_document else "gold"
        return [Asked(str(row["id"]), row["question"], frozenset(row.get(field) or ())) for row in self.questions]

    def digest(self) -> str:
        return blake2b(json.dumps(self.passages, sort_keys=True).encode(), digest_size=16).hexdigest()


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines)
    except (OSError, EOFError, ValueError) as error:
        raise NotFound(
            f"{path} is not the file of a question set: {error}",
            hint="--kit names a folder with passages.jsonl.gz and questions.jsonl.gz",
        ) from None
