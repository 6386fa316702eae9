"""What an index must hold of sentences, titles and sessions, worked out the slow way from what is left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from index import keys
from index.graph.segment import Relation
from index.naming import name_key, sentences_of, telling, title_form
from index.types import Document, Passage

from .naive import Entries


def relations(passages: Iterable[Passage]) -> Mapping[Relation, Entries]:
    """The relations of sentences and titles."""
    left = list(passages)
    found = {
        relation: Entries()
        for relation in (Relation.SENTENCES, Relation.NAMES, Relation.TITLED, Relation.ABOUT, Relation.TITLES)
    }
    titles = {form for passage in left if (form := title_form(passage.about))}
    for passage in left:
        for sentence in sentences_of(passage):
            found[Relation.SENTENCES][passage.key, sentence.key] = sentence.place + 1
            for form, weight in sentence.names.items():
                found[Relation.NAMES][name_key(form), sentence.key] = weight
            said = f" {' '.join(sentence.words)} "
            for form in titles:
                if telling(form) and f" {form} " in said:
                    found[Relation.TITLED][name_key(form), sentence.key] = 1
        if form := title_form(passage.about):
            found[Relation.ABOUT][passage.key, name_key(form)] += 1
            found[Relation.TITLES][name_key(form), name_key(form)] += 1
    return found


def sessions(documents: Iterable[Document]) -> Mapping[bytes, list[bytes]]:
    """Per session its passages in order, for documents that say `session` and `order`."""
    found: dict[bytes, list[tuple[float, str, bytes]]] = {}
    for document in documents:
        metadata = json.loads(document.metadata)
        if "session" in metadata:
            session = keys.key("session", f"session={metadata['session']}")
            members = found.setdefault(session, [])
            members += [(metadata.get("order", 0), document.id, passage) for passage in document.passages]
    return {session: [passage for *_, passage in sorted(members)] for session, members in found.items() if members}
