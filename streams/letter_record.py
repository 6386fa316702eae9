"""Dead letters as records of a topic, and back: everything that is known of a letter but its payload is a header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

from .connection import DEAD_LETTERS
from .feeds.base import MAX_PAYLOAD
from .letter import DeadLetter
from .producer import Outgoing

TEXT_BYTES: Final = 2048
"""Of a reason, and of any other text in a header; the rest is cut off."""
MAX_KEY: Final = MAX_PAYLOAD
"""Bytes that are kept of the key of a record."""

Headers = Sequence[tuple[str, bytes]]

_REPLAYED, _NUMBER = "replayed", "number"


def letter_key(source: str, position: int | None, namespace: str | None, step: str, payload: bytes) -> bytes:
    """What makes two letters the same: where in its source the event stood, or else what it was and where it came from.

    So a letter that is written once more after a crash or a rebalance takes the place of the first.
    """
    if position is not None:
        return _encoded(f"{source}:{position}/{step}")
    digest = blake2b(digest_size=16)
    for part in (source.encode(errors="backslashreplace"), step.encode(), (namespace or "").encode(), payload):
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest().encode()


def letter_record(key: bytes, letter: DeadLetter, most: int) -> Outgoing:
    """The record of a letter that waits, of at most `most` bytes: the payload's head where the whole does not fit.

    Nothing is lost by that: what came from a topic stays there as it was.
    """
    headers = [*_headers(letter), ("tombstone", b"1")] if letter.is_tombstone else _headers(letter)
    record = Outgoing(DEAD_LETTERS, 0, key, letter.payload, headers)
    if record.size <= most:
        return record
    headers.append(("cut", b"%d" % len(letter.payload)))
    room = most - record._replace(value=b"", headers=headers).size
    return record._replace(value=letter.payload[:room], headers=headers)


def replayed_record(key: bytes, headers: Headers, number: int, token: str) -> Outgoing:
    """What takes the place of a letter's record once its event was accepted as `token`."""
    return Outgoing(DEAD_LETTERS, 0, key, b"", [*headers, (_NUMBER, b"%d" % number), (_REPLAYED, token.encode())])


def dropped_record(key: bytes) -> Outgoing:
    return Outgoing(DEAD_LETTERS, 0, key, None)


def number_of(offset: int, headers: Headers) -> int:
    """The number of the letter whose newest record this is: the place, from 1, of the record that brought it."""
    number = None if replayed_as(headers) is None else _number(dict(headers), _NUMBER)
    return offset + 1 if number is None else number


def replayed_as(headers: Headers) -> str | None:
    """The token of the event that replaced the letter."""
    return _text(dict(headers), _REPLAYED)


def namespace_of(headers: Headers) -> str | None:
    return _text(dict(headers), "namespace")


def letter_from(offset: int, headers: Headers, payload: bytes) -> DeadLetter:
    """The letter of a record. What a foreign program wrote there is a letter too, of which little is known."""
    held = dict(headers)
    return DeadLetter(
        number=number_of(offset, headers),
        at=_number(held, "at") or 0,
        source=_text(held, "source") or "",
        position=_number(held, "position"),
        namespace=_text(held, "namespace"),
        id=_text(held, "id"),
        step=_text(held, "step") or "",
        reason=_text(held, "reason") or "",
        attempts=_number(held, "attempts") or 0,
        payload=payload,
        replayed=_text(held, _REPLAYED),
        key=held.get("key"),
        is_tombstone="tombstone" in held,
        cut_from=_number(held, "cut"),
    )


def _headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    texts = {"source": letter.source, "namespace": letter.namespace, "id": letter.id, "step": letter.step}
    numbers = {"position": letter.position, "attempts": letter.attempts, "at": letter.at}
    headers = [(name, _encoded(text)) for name, text in (texts | {"reason": letter.reason}).items() if text is not None]
    headers += [(name, b"%d" % number) for name, number in numbers.items() if number is not None]
    return headers if letter.key is None else [*headers, ("key", letter.key[:MAX_KEY])]


def _encoded(text: str) -> bytes:
    """At most TEXT_BYTES of UTF-8, whatever the text holds: names of files may have lone surrogates."""
    return text.encode(errors="backslashreplace")[:TEXT_BYTES].decode(errors="ignore").encode()


def _text(headers: Mapping[str, bytes], name: str) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode(errors="backslashreplace")


def _number(headers: Mapping[str, bytes], name: str) -> int | None:
    value = headers.get(name, b"")
    return int(value) if value.isdigit() and len(value) < 20 else None
