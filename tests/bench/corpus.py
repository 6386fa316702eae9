"""Documents for benchmarks: seeded, name-rich prose of any amount, with names shared as unevenly as real ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

from index.types import DocumentEvent

_FIRST = """
    Ada Bruno Clara Dmitri Elena Farid Greta Hugo Ines Jonas Keiko Lars Mara Nils Olga Pavel Quentin Rosa Sven Tilda
    Umar Vera
""".split()
_LAST = """
    Abel Brock Castell Dorn Ellery Falk Gray Holm Ivers Juhl Kern Lind Moss Nolan Orr Pell Quill Rask Stern Thrale
    Ude Voss
""".split()
_PLACE = """
    Harbour Lock Mill Bridge Station Academy Press Museum Works Society Tower Library Union Theatre Institute Bank
""".split()
_VERBS = """
    founded visited painted repaired sold described left joined opened surveyed inherited directed restored closed
""".split()
_WORDS = """
    the of a in and to was for with on that from after before during new old small first last great public early
    later many several local river coast winter summer report letter plan garden road house trade paper stone water
    light year work part
""".split()
_NAMES_PER_DOCUMENT = 0.6
"""New names grow with the corpus, more slowly than it does."""


def documents(count: int, passages: int, seed: int = 7919, start: int = 0) -> Iterator[DocumentEvent]:
    """`count` documents of about `passages` passages of 100 words; document i is always the same."""
    for number in range(start, start + count):
        chance = random.Random(f"{seed}:{number}")
        names = [_name(chance, number) for _ in range(6)]
        sentences = [_sentence(chance, names) for _ in range(round(passages * 100 / 16))]
        yield DocumentEvent(
            namespace="bench",
            id=f"d{number}",
            title=f"{names[0]} {number}",
            text=" ".join(sentences),
            metadata={"number": number},
        )


def _name(chance: random.Random, number: int) -> str:
    # Squaring makes some names common and most rare.
    pool = 50 + int(number * _NAMES_PER_DOCUMENT)
    which = int(pool * chance.random() ** 2)
    first, last = _FIRST[which % len(_FIRST)], _LAST[which // len(_FIRST) % len(_LAST)]
    if which % 3 == 0:
        return f"{last} {_PLACE[which % len(_PLACE)]}"
    middle = which // (len(_FIRST) * len(_LAST))
    return f"{first} {chr(65 + middle % 26)}. {last}" if middle else f"{first} {last}"


def _sentence(chance: random.Random, names: list[str]) -> str:
    words = chance.choices(_WORDS, k=chance.randrange(5, 14))
    one, other = chance.sample(names, 2)
    tail = f" in {1850 + chance.randrange(150)}" if chance.random() < 0.3 else ""
    middle = f" {other} and" if chance.random() < 0.4 else ""
    return f"{one} {chance.choice(_VERBS)}{middle} {' '.join(words)}{tail}."
