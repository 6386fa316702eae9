"""Which names a sentence has, and what a document is about: the joints over which `fused` leaps (methods/fused.md, 2).

Functions of letters alone, so that a passage contributes the same whenever it is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from . import keys
from .text import clean, names, norm, sentences, terms, uncamel
from .types import Key, Passage

SURE = 1 << 32
"""Weight of a certain mention of a name in a sentence; smaller weights count doubtful ones.

So a sum of weights tells whether any is certain, and 2³² doubtful ones are never reached.
"""
DOUBTFUL = 1

_POSSESSIVE = re.compile(r"['’]s\b")
_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
_SPEAKER = re.compile(r"^[^\W_][\w.'’-]{0,39}+(?: [\w.'’-]{1,39}+){0,2}:\s", re.MULTILINE)
"""A label of three words at most: what is longer introduces a list."""
_ELIDED = frozenset("s t re ve ll m d".split())
"""What an elision leaves of a word; `terms` drops it, and may change the word before it."""
_CHAT = ("conversation", "session", "speaker")
"""Metadata that only messages have."""


class Sentence(NamedTuple):
    """One sentence of a passage, as the table `sentences` and the relation NAMES hold it."""

    key: Key
    place: int
    """From 0, in the passage."""
    text: str
    """What its vector is made of: the sentence behind what the passage is about, which stands in for its pronouns."""
    names: Mapping[str, int]
    """Normal form of each name -> SURE, DOUBTFUL, or both."""
    words: Sequence[str]
    """Its words in normal form: a title that stands among them in a row is mentioned."""


def name_form(name: str) -> str:
    """Normal form by which two spellings are one name: `norm`, without a possessive 's and a leading "the"."""
    return _bare(norm(_POSSESSIVE.sub(" ", name)))


def title_form(title: str) -> str:
    """Normal form of the name that a title stands for: without a bracket at its end, and with camel case cut."""
    return name_form(uncamel(_BRACKET.sub("", title))) or name_form(uncamel(title))


def words(text: str) -> list[str]:
    """The words of a sentence or question in normal form, in order; those of a name's form stand in it in a row."""
    return norm(_POSSESSIVE.sub(" ", uncamel(text))).split()


def telling(form: str) -> frozenset[str]:
    """The terms that every text with the words of a title has; a title without any (`It`) is not looked for in texts.

    What stands before an elision is left out: `terms` may read it otherwise in a text than in a normal form.
    """
    parts = form.split()
    plain = (part for part, after in zip(parts, [*parts[1:], ""], strict=True) if after not in _ELIDED)
    return frozenset(terms(" ".join(part for part in plain if part not in _ELIDED)))


@lru_cache(maxsize=1 << 12)
def name_key(form: str) -> Key:
    return keys.key("name", form)


def about(title: str, text: str, metadata: Mapping[str, Any]) -> str:
    """What a document is about: its title, else the first name of its opening sentence, else nothing.

    A message has no such name: the first one there is only the speaker.
    """
    if written := clean(title):
        return written
    if any(name in metadata for name in _CHAT) or _SPEAKER.search(text):
        return ""
    found = names(next(iter(sentences(text)), ""))
    return found[0].text if found else ""


def about_document(title: str, text: str, metadata: str) -> str:
    """`about`, for metadata in JSON."""
    return about(title, text, {} if title else json.loads(metadata))


def sentences_of(passage: Passage) -> list[Sentence]:
    """The sentences of a passage in order. Without the passage's key or under another title they are others."""
    found = []
    speaker = _speaker(passage.metadata)
    for place, sentence in enumerate(sentences(passage.text)):
        # A message's later sentences are the speaker's as well, and their "I" is nobody else.
        if label := _SPEAKER.match(sentence):
            speaker = label[0]
        text = f"{passage.about}: {sentence}" if passage.about else sentence if label else speaker + sentence
        key = keys.key("sentence", passage.key.hex(), str(place), text)
        found.append(Sentence(key, place, text, names_in(sentence), words(sentence)))
    return found


def names_in(sentence: str) -> dict[str, int]:
    """Normal form of each name of a sentence -> SURE, DOUBTFUL, or their sum."""
    found: dict[str, int] = {}
    for name in names(sentence):
        if form := _form_of_name(name.text):
            found[form] = found.get(form, 0) | (DOUBTFUL if name.doubtful else SURE)
    return found


def _speaker(metadata: str) -> str:
    """Who says what no label in the text gives to anybody, as a label."""
    if '"speaker"' not in metadata:
        return ""
    speaker = json.loads(metadata).get("speaker")
    return f"{clean(speaker)}: " if isinstance(speaker, str) and speaker.strip() else ""


@lru_cache(maxsize=1 << 12)
def _form_of_name(name: str) -> str:
    return name_form(uncamel(name))


def _bare(form: str) -> str:
    return form.removeprefix("the ") if form != "the" else ""
