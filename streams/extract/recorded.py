"""An extractor that replays what a model once said: for tests, demos and measurements without a model."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from index.errors import MissingRecording, ModelError
from index.keys import key
from index.types import Extraction, Triple


class RecordedExtractor:
    """Looks passages up by (title, text), then by text under any title (recorded with title None)."""

    def __init__(self, recorded: Mapping[tuple[str | None, str], Extraction], source: str = "memory") -> None:
        """`source` names the recording in messages and in the fingerprint, which covers its contents too."""
        self._recorded = dict(recorded)
        self._source = source
        rows = sorted(json.dumps([title, text, repr(found)]) for (title, text), found in self._recorded.items())
        self._digest = key("extraction", *rows).hex()[:16]

    @classmethod
    def load(cls, path: str | Path) -> RecordedExtractor:
        """Read JSON lines (.jsonl, or .jsonl.gz): {text, title?, memory?, entities?, triples?}.

        Triples of other than three parts are left out. Of two rows for the same passage the first counts. Raises
        ModelError, with file and line, when it cannot be read.
        """
        path = Path(path)
        recorded: dict[tuple[str | None, str], Extraction] = {}
        for where, row in _rows(path):
            recorded.setdefault((row.get("title"), _text(row, where)), _extraction(row, where))
        return cls(recorded, path.name)

    @classmethod
    def load_kit(cls, folder: str | Path, source: str) -> RecordedExtractor:
        """Read `extractions_<source>.jsonl.gz` of an evaluation kit, whose rows refer to `passages.jsonl.gz` by id.

        Raises ModelError when a file cannot be read or a row refers to a passage that is not there.
        """
        folder = Path(folder)
        rows = _rows(folder / "passages.jsonl.gz")
        passages = {row.get("id"): (row.get("title", ""), _text(row, where)) for where, row in rows}
        recorded: dict[tuple[str | None, str], Extraction] = {}
        for where, row in _rows(folder / f"extractions_{source}.jsonl.gz"):
            if row.get("id") not in passages:
                raise ModelError(f"{where}: no passage has the id {row.get('id')!r}", hint="Use both files of one kit")
            recorded.setdefault(passages[row["id"]], _extraction(row, where))
        return cls(recorded, source)

    @property
    def fingerprint(self) -> str:
        return f"recorded-1:{self._source}:{self._digest}"

    def extract(self, passages: Sequence[tuple[str, str]]) -> list[Extraction]:
        """Raises MissingRecording, with their number and one of them, when passages are not recorded."""
        found = [self._recorded.get((title, text)) or self._recorded.get((None, text)) for title, text in passages]
        missing = [passage for passage, extraction in zip(passages, found, strict=True) if extraction is None]
        if missing:
            title, text = missing[0]
            raise MissingRecording(
                f"{len(missing)} of {len(passages)} passages are not in the recording {self._source}, "
                f"such as {title!r}: {text[:80]!r}",
                hint="Cut documents as the recording did (chunker `whole`), or use the extractor `rules`",
            )
        return [extraction for extraction in found if extraction is not None]


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """("file:line", row) of a file of JSON objects."""
    where = str(path)
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                where = f"{path}:{number}"
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError("a row is a JSON object")
                yield where, row
    except (OSError, EOFError, ValueError) as error:
        raise ModelError(f"{where} is no readable recording: {error}", hint="Check the path") from error


def _text(row: Mapping[str, Any], where: str) -> str:
    if not isinstance(row.get("text"), str):
        raise ModelError(f"{where} has no text", hint="A recorded passage is found by its text")
    return str(row["text"])


def _extraction(row: Mapping[str, Any], where: str) -> Extraction:
    try:
        triples = [tuple(map(str, triple)) for triple in row.get("triples", ())]
        return Extraction(
            memory=str(row.get("memory", "")),
            entities=tuple(map(str, row.get("entities", ()))),
            triples=tuple(Triple(*triple) for triple in triples if len(triple) == 3),
        )
    except TypeError as error:
        raise ModelError(f"{where}: entities or triples are no lists: {error}", hint="Record this again") from error
