"""A question set on disk: passages that become documents, questions, and which of the passages answer them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
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
        passages = list(_rows(folder / "passages.jsonl.gz", ("text",)))
        return cls(folder, passages, list(_rows(folder / "questions.jsonl.gz", ("question",)))[:limit])

    @property
    def namespace(self) -> str:
        return re.sub(r"[^a-z0-9._-]", "-", self.folder.resolve().name.lower()).lstrip("._-")[:63] or "kit"

    @property
    def by_document(self) -> bool:
        """Whether gold names documents of several passages."""
        return any("gold_docs" in question for question in self.questions)

    def events(self) -> Iterator[DocumentEvent]:
        """One document per passage; what is no text of it becomes metadata, a date in `timestamp` the event time."""
        for row in self.passages:
            known = {"id", "title", "text", "sentences"}
            metadata = {name: value for name, value in row.items() if name not in known and value is not None}
            fields = {"namespace": self.namespace, "id": row["id"], "text": row["text"], "metadata": metadata}
            moment = {"event_time": metadata.pop("timestamp")} if _is_date(metadata.get("timestamp")) else {}
            yield validated(fields | moment | {"title": row.get("title") or ""})

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


def _is_date(written: object) -> bool:
    try:
        return isinstance(written, str) and datetime.fromisoformat(written) is not None
    except ValueError:
        return False


def _rows(path: Path, needed: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                row = json.loads(line)
                row["id"] = str(row["id"])
                if lacking := [name for name in needed if not isinstance(row.get(name), str)]:
                    raise ValueError(f"line {number} has no text {lacking[0]!r}")
                yield row
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise NotFound(
            f"{path} is not the file of a question set: {error}",
            hint="--kit names a folder with passages.jsonl.gz and questions.jsonl.gz",
        ) from None
