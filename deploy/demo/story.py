"""The story that the demo tells: its documents as events, and what is asked, edited and deleted on the way.

`documents.jsonl` holds one year of Merrow Haven, an invented harbour town: notices, logs, letters, chats and newspaper
reports in the order of their `event_time`. Some are wrong, and a later one says so (`metadata.corrects` names the
earlier id). One is long, the chronicle, whose author promises to change a sentence for whoever brings her proof.
`script.json` holds what the demo asks, edits and deletes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from index.errors import NotFound
from index.types import DocumentEvent
from streams.events import decode

DOCUMENTS: Final = Path(__file__).with_name("documents.jsonl")
"""Events without a namespace, one a line: any JSONL feed can read the file as it stands."""
SCRIPT: Final = Path(__file__).with_name("script.json")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MultiHop(_Part):
    """A question that no single document answers."""

    question: str
    answer: str
    gold: tuple[str, ...]
    """Ids of the documents that answer it together."""
    hops: str
    """The chain of names that leads through them."""


class Edit(_Part):
    """One sentence of a long document that turns out to be wrong."""

    document: str
    before: str
    """Stands exactly once in the document, and nowhere else."""
    after: str
    question: str
    """Its answer changes with the edit."""


class Deletion(_Part):
    """A document that should never have been written."""

    document: str
    canary: str
    """Words that stand in this document alone: once it is gone they must be in no answer."""
    question: str
    """Finds the document as long as it is there."""


class _Script(_Part):
    questions: tuple[MultiHop, ...]
    edit: Edit
    deletion: Deletion


class Story(_Part):
    """Everything the demo needs, in the namespace it was loaded for."""

    events: tuple[DocumentEvent, ...]
    """Upserts of different documents, the oldest `event_time` first."""
    questions: tuple[MultiHop, ...]
    edit: Edit
    deletion: Deletion

    def document(self, name: str) -> DocumentEvent:
        """The event that brings the document with the id `name`. Raises NotFound when the story has none."""
        for event in self.events:
            if event.id == name:
                return event
        raise NotFound(f"the story has no document {name!r}", hint=f"its documents are the lines of {DOCUMENTS.name}")

    def edited(self) -> DocumentEvent:
        """The long document as it reads after the edit."""
        event = self.document(self.edit.document)
        return event.model_copy(update={"text": event.text.replace(self.edit.before, self.edit.after)})

    def deleted(self) -> DocumentEvent:
        """The event that takes the document of the deletion away."""
        event = self.document(self.deletion.document)
        return DocumentEvent(op="delete", namespace=event.namespace, id=event.id)


def load(namespace: str) -> Story:
    """The story as events of `namespace`.

    Raises InvalidEvent when a line of `documents.jsonl` is no event, or `namespace` no name for one.
    """
    script = _Script.model_validate_json(SCRIPT.read_bytes())
    lines = DOCUMENTS.read_bytes().splitlines()
    events = tuple(decode(line, default_namespace=namespace) for line in lines)
    return Story(events=events, questions=script.questions, edit=script.edit, deletion=script.deletion)
