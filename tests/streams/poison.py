"""Records of `documents` that are no events, in more than two hundred kinds: what broken or hostile producers send."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import random
import string
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from streams.events import MAX_METADATA_DEPTH, Limits

LIMITS: Final = Limits(document_bytes=2**16, metadata_bytes=2**12)
"""The corpus is made for these: what is too large for them is still small enough to be sent by the hundred."""
NAMESPACE: Final = "poison"


class Poison(NamedTuple):
    """One record. No two of a corpus have the same kind, or the same key and value."""

    kind: str
    """What is wrong with it."""
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


def corpus(seed: int = 0) -> list[Poison]:
    """One record of every kind, in an order, with texts and headers that `seed` decides."""
    chance = random.Random(seed)
    found = [
        Poison(kind, f"{NAMESPACE}/p{number}".encode(), value, _headers(chance))
        for number, (kind, value) in enumerate(_values(_Event(chance)))
    ]
    found += [Poison(kind, key, None, _headers(chance)) for kind, key in _tombstones()]
    chance.shuffle(found)
    return found


class _Event:
    """Makes events that are flawed in what they are told, and in nothing else."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def fields(self, **changes: Any) -> dict[str, Any]:
        words = " ".join(self.chance.choices(["Ann", "saw", "the", "brown", "fox", "naïve", "in", "Paris"], k=9))
        fields = {"v": 1, "op": "upsert", "namespace": NAMESPACE, "id": self.name(), "version": 7}
        return fields | {"title": "A fox", "text": words, "metadata": {"page": 3}, "event_time": "2024-05-31"} | changes

    def name(self) -> str:
        return "".join(self.chance.choices(string.ascii_lowercase, k=12))

    def written(self, **changes: Any) -> bytes:
        return json.dumps(self.fields(**changes)).encode()

    def without(self, name: str) -> bytes:
        return json.dumps({key: value for key, value in self.fields().items() if key != name}).encode()

    def raw(self, name: str, written: str) -> bytes:
        """With one more field, whose JSON is given."""
        return self.without(name)[:-1] + f', "{name}": {written}}}'.encode()


_Values = Iterator[tuple[str, bytes]]


def _values(event: _Event) -> _Values:
    yield from _cut(event)
    yield from _surrounded(event)
    yield from _encoded(event)
    yield from _almost_json(event)
    yield from _other_formats(event)
    yield from _no_objects(event)
    yield from _wrong_types(event)
    yield from _wrong_fields(event)
    yield from _wrong_names(event)
    yield from _wrong_moments(event)
    yield from _repeated(event)
    yield from _metadata(event)
    yield from _too_large(event)


def _cut(event: _Event) -> _Values:
    whole = event.written()
    yield "empty", b""
    for tenth in range(1, 10):
        yield f"cut off after {tenth} tenths", whole[: len(whole) * tenth // 10]
    yield "without its last bracket", whole[:-1]
    for mark in (b'"v', b'"v"', b'"v":', b'"op": "', b'"text": ', b'"metadata": {', b'"page": '):
        yield f"cut off behind {mark.decode()}", whole[: whole.index(mark) + len(mark)]
    yield "without its first bracket", whole[1:]


def _surrounded(event: _Event) -> _Values:
    garbage = {"a bracket": b"}", "a square bracket": b"]", "a comma": b",", "a word": b"x", "null": b"null"}
    garbage |= {"NUL": b"\0", "a comment": b" // seen", "a semicolon": b";", "a form feed": b"\f", "DEL": b"\x7f"}
    for name, bytes_ in garbage.items():
        yield f"{name} behind it", event.written() + bytes_
        yield f"{name} before it", bytes_ + event.written()
    yield "two events", event.written() + event.written()
    yield "two lines of events", event.written() + b"\n" + event.written()
    yield "a byte order mark", b"\xef\xbb\xbf" + event.written()
    yield "a guard against scripts", b")]}',\n" + event.written()
    yield "a callback around it", b"callback(" + event.written() + b")"
    yield "a no-break space before it", "\u00a0".encode() + event.written()


def _encoded(event: _Event) -> _Values:
    text = json.dumps(event.fields(text="naïve café", title="naïve"), ensure_ascii=False)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-7"):
        yield encoding, text.encode(encoding) if encoding != "utf-7" else text.replace("{", "+AHs-").encode()
    for encoding in ("latin-1", "cp1252", "cp437", "mac-roman"):
        yield encoding, text.encode(encoding)
    for name, wrong in {
        "an overlong slash": b"\xc0\xaf",
        "a surrogate in bytes": b"\xed\xa0\x80",
        "half a character": b"\xc3",
        "a continuation byte": b"\x80",
        "a byte that is never there": b"\xff",
        "a character beyond Unicode": b"\xf4\x90\x80\x80",
        "five bytes a character": b"\xf8\x88\x80\x80\x80",
    }.items():
        for place in ("text", "id"):
            yield f"{name} in {place}", event.written(**{place: "@@"}).replace(b"@@", wrong)
    whole = event.written()
    for name, packed in {
        "gzip": gzip.compress(whole, mtime=0),
        "zlib": zlib.compress(whole),
        "bzip2": bz2.compress(whole),
        "base64": base64.b64encode(whole),
        "hexadecimal digits": whole.hex().encode(),
        "reversed": whole[::-1],
        "every bit turned": bytes(255 - byte for byte in whole),
    }.items():
        yield name, packed


def _almost_json(event: _Event) -> _Values:
    fields = event.fields()
    yield "a Python value", repr(fields).encode()
    yield "names without quotes", event.written().replace(b'"op"', b"op")
    yield "single quotes", event.written().replace(b'"', b"'")
    yield "a comma too much", event.written()[:-1] + b",}"
    yield "a comma too few", event.written().replace(b', "op"', b' "op"')
    yield "equals signs", event.written().replace(b": ", b" = ")
    yield "a comment inside", event.written().replace(b"{", b"{/* event */", 1)
    yield "typographic quotes", event.written().decode().replace('"op"', "“op”").encode()
    raw = {"hexadecimal": "0x07", "octal": "07", "a plus sign": "+7", "a bare point": "7.", "no digit": ".7"}
    raw |= {"an underscore": "1_000", "undefined": "undefined", "None": "None", "True": "True", "a fraction": "7/2"}
    raw |= {"a number of 5,000 digits": "9" * 5000, "nothing": "", "a BigInt": "7n", "an exponent alone": "1e"}
    for name, written in raw.items():
        yield f"{name} as version", event.raw("version", written)
    strings = {
        "a line feed": "a\nb",
        "a tab": "a\tb",
        "NUL": "a\0b",
        "an unknown escape": r"a\xb",
        "half an escape": r"\u12",
    }
    strings |= {"a lone backslash": "a\\", "a bare quote": 'a"b'}
    for name, written in strings.items():
        yield f"{name} in a string", event.raw("text", f'"{written}"')


def _other_formats(event: _Event) -> _Values:
    fields = event.fields()
    yield "YAML", "".join(f"{name}: {value}\n" for name, value in fields.items()).encode()
    yield "XML", f"<?xml version='1.0'?><event><id>{fields['id']}</id></event>".encode()
    yield "a page of an error", b"<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>"
    yield "comma-separated values", f"{NAMESPACE},{fields['id']},{fields['text']}\r\n".encode()
    yield "a form", f"namespace={NAMESPACE}&id={fields['id']}&text=x".encode()
    yield "TOML", f'namespace = "{NAMESPACE}"\nid = "{fields["id"]}"\n'.encode()
    yield "plain text", fields["text"].encode()
    yield "Avro of a schema registry", b"\0\0\0\0\x2a" + event.written()
    yield "MessagePack", b"\x82\xa9namespace\xa6poison\xa2id\xa1x"
    yield "CBOR", b"\xa2\x69namespace\x66poison\x62id\x61x"
    yield "protocol buffers", b"\x0a\x06poison\x12\x01x"
    yield "a pickle", b"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x02id\x94K\x01s."
    yield "a picture", b"\x89PNG\r\n\x1a\n" + event.chance.randbytes(40)
    yield "a PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
    yield "a program", b"\x7fELF" + event.chance.randbytes(40)
    yield "noise", event.chance.randbytes(200)
    yield "only NULs", bytes(64)
    yield "only blanks", b" \n\t\r"
    yield "a whole number in bytes", struct.pack(">q", 7)
    yield "a path", b"/etc/passwd"
    yield "a template", b"${jndi:ldap://localhost/x}"
    yield "SQL", b"'; DROP TABLE documents; --"


def _no_objects(event: _Event) -> _Values:
    for written in ("null", "true", "false", "0", "-1", "7.5", "1e400", "NaN", "Infinity", "-Infinity", '""', "[]"):
        yield f"{written} and no object", written.encode()
    yield "an event in a list", b"[" + event.written() + b"]"
    yield "an event in a string", json.dumps(event.written().decode()).encode()
    yield "an event in an envelope", json.dumps({"payload": event.fields()}).encode()
    yield "an event with its schema", json.dumps({"schema": {}, "payload": event.fields()}).encode()
    yield "a list of pairs", json.dumps(list(event.fields().items())).encode()
    yield "lists nested a thousand deep", b"[" * 1000 + b"]" * 1000
    yield "lists nested 30,000 deep", b"[" * 30_000 + b"]" * 30_000
    yield "brackets that never close", b"[" * 60_000
    yield "objects nested 10,000 deep", b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    yield "an empty object", b"{}"


_TYPES: Final[dict[str, Any]] = {
    "null": None,
    "a boolean": True,
    "a number": 11,
    "a fraction": 1.5,
    "a text": "words",
    "a list": ["words"],
    "an object": {"a": "words"},
}


def _wrong_types(event: _Event) -> _Values:
    fits = {"namespace": ["a text"], "id": ["a text"], "title": ["a text"], "text": ["a text"], "v": [], "op": []}
    fits |= {"version": ["a number", "null"], "metadata": ["an object"], "event_time": ["null"]}
    for name, allowed in fits.items():
        for kind, value in _TYPES.items():
            if kind not in allowed:
                yield f"{name} is {kind}", event.written(**{name: value})


def _wrong_fields(event: _Event) -> _Values:
    for name in ("namespace", "id"):
        yield f"no {name}", event.without(name)
    for written_in in (0, 2, -1, 1.0, "1", 2**64):
        yield f"written in version {written_in!r} of events", event.written(v=written_in)
    for op in ("insert", "UPSERT", "", "upsert ", "Delete", "upsert\0", "\ud800"):
        yield f"the operation {op!r}", event.written(op=op)
    wrong: list[object] = [-1, -(2**63), 2**63, 2**64, 10**30, 1.0, 1e3, -0.5, "7", "", float("nan"), float("inf"), [7]]
    for version in wrong:
        yield f"the version {version!r}", event.written(version=version)
    for name in ("body", "Text", "ID", "text ", "", "_id", "__proto__", "event_times", "тext", "v\0", "\ud800"):
        yield f"an unknown field {name!r}", event.written(**{name: "x"})
    for name in ("title", "text"):
        for text in ("\ud800", "a\udfff", "\udc00\ud800"):
            yield f"the {name} {text!r}", event.written(**{name: text})
    yield "a delete without id", json.dumps({"op": "delete", "namespace": NAMESPACE}).encode()
    yield "a delete with an unknown field", event.written(op="delete", reason="x")
    yield "a delete of a version below none", event.written(op="delete", version=-7)


def _wrong_names(event: _Event) -> _Values:
    wrong = [
        "",
        "A",
        "-a",
        ".a",
        "_a",
        "a/b",
        "a b",
        " a",
        "a ",
        "a\n",
        "a\0",
        "ä",
        "а",
        "a" * 64,
        "..",
        "*",
        "a:b",
        "a\\b",
    ]
    wrong += ["a%2fb", "日本", "\ud800", "../a", "a" * 5000]
    for namespace in wrong:
        yield f"the namespace {namespace[:70]!r}", event.written(namespace=namespace)
    for kind, id in {
        "empty": "",
        "513 bytes": "i" * 513,
        "513 bytes in half as many characters": "é" * 256 + "i",
        "516 bytes in emoji": "🦊" * 129,
        "40,000 bytes": "i" * 40_000,
        "a high surrogate": "\ud800",
        "a low surrogate": "a\udc00b",
        "a surrogate pair turned round": "\udc00\ud800",
    }.items():
        yield f"an id of {kind}", event.written(id=id)


def _wrong_moments(event: _Event) -> _Values:
    wrong: list[object] = ["", "yesterday", "now", "2024-13-01", "2024-00-10", "2024-02-30", "2023-02-29", "31.05.2024"]
    wrong += ["05/31/2024", "20240531", "2024-W22-5", "2024-152", "2024-05-31T25:00:00Z", "2024-05-31T18:61:00Z"]
    wrong += ["2024-05-31T18:00:00+25:00", "0000-01-01", "10000-01-01", "-0001-01-01", "2024-05-31\ud800"]
    wrong += [
        "1717178400",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2024-05-31 at noon",
        "P1D",
        0,
        -1,
    ]
    wrong += [
        1717178400000,
        float("nan"),
        float("inf"),
        False,
        "٢٠٢٤-٠٥-٣١",
        " 2024-05-31",
        "2024-5-31",
        "Fri, 31 May 2024",
    ]
    for moment in wrong:
        yield f"the moment {moment!r}", event.written(event_time=moment)


def _repeated(event: _Event) -> _Values:
    for name, value in event.fields().items():
        again = json.dumps({name: value}).encode()
        yield f"{name} twice", event.written()[:-1] + b", " + again[1:]
    yield "text twice, once with an escape in its name", event.written()[:-1] + rb', "te\u0078t": "x"}'
    yield "an unknown field twice", event.written()[:-1] + b', "x": 1, "x": 1}'
    yield "a key of the metadata twice", event.raw("metadata", '{"a": 1, "a": 1}')
    yield "a key deep in the metadata twice", event.raw("metadata", '{"a": [{"b": 1, "b": 2}]}')


def _metadata(event: _Event) -> _Values:
    deep_list: Any = 1
    deep_object: Any = 1
    mixed: Any = 1
    for depth in range(MAX_METADATA_DEPTH):
        deep_list, deep_object = [deep_list], {"a": deep_object}
        mixed = [mixed] if depth % 2 else {"a": mixed}
    wrong = {"lists too deep": deep_list, "objects too deep": deep_object, "both too deep": mixed}
    wrong |= {"NaN": float("nan"), "Infinity": float("inf"), "minus Infinity": float("-inf"), "2**63": 2**63}
    wrong |= {"-2**63 - 1": -(2**63) - 1, "10**400": 10**400, "a lone surrogate": "\ud800"}
    wrong |= {"a lone surrogate as key": {"\ud800": 1}, "NaN in a list": [1, [float("nan")]]}
    wrong |= {"an empty list too deep": [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}
    for kind, value in wrong.items():
        yield f"metadata holding {kind}", event.written(metadata={"a": value})
    yield "metadata with a lone surrogate as key", event.written(metadata={"a\udfff": 1})
    yield "metadata holding 1e400", event.raw("metadata", '{"a": 1e400}')
    yield "metadata holding a number of 5,000 digits", event.raw("metadata", f'{{"a": {"9" * 5000}}}')
    yield "metadata nested 20,000 deep", event.raw("metadata", '{"a":' + "[" * 20_000 + "]" * 20_000 + "}")
    yield "metadata nested 500 deep", event.raw("metadata", '{"a":' + "[" * 500 + "]" * 500 + "}")
    yield "metadata in a string", event.written(metadata='{"a": 1}')
    most = LIMITS.metadata_bytes
    yield "metadata with too long a text", event.written(metadata={"a": "x" * most})
    yield "metadata with too many keys", event.written(metadata={f"k{number}": number for number in range(most // 6)})
    yield "metadata with too long a list", event.written(metadata={"a": [1] * (most // 2)})
    yield "metadata with too long a key", event.written(metadata={"k" * most: 1})
    yield "metadata too large in bytes, not in characters", event.written(metadata={"a": "é" * (most // 2)})


def _too_large(event: _Event) -> _Values:
    most = LIMITS.document_bytes
    yield "too long a text", event.written(title="", text="x" * (most + 1))
    yield "too long a title", event.written(title="x" * (most + 1), text="")
    yield "title and text too long together", event.written(title="x" * (most // 2), text="y" * (most // 2 + 1))
    long = event.fields(title="", text="é" * (most // 2 + 1))
    yield "a text too long in bytes, not in characters", json.dumps(long, ensure_ascii=False).encode()
    yield "a text of too many blanks", event.written(title="", text=" " * (most + 1))
    yield "a delete with too long a text", event.written(op="delete", text="x" * (most + 1))


def _tombstones() -> Iterator[tuple[str, bytes]]:
    for kind, key in {
        "an empty key": b"",
        "a key without a slash": b"poison",
        "a slash for a key": b"/",
        "a key without namespace": b"/d",
        "a key without id": b"poison/",
        "a key in capitals": b"POISON/d",
        "a key with a blank": b"poi son/d",
        "a key that begins with a blank": b" poison/d",
        "a key with a NUL": b"poi\0son/d",
        "a key with a byte order mark": b"\xef\xbb\xbfpoison/d",
        "a key in UTF-16": "poison/d".encode("utf-16"),
        "a namespace that is not UTF-8": b"\xff/d",
        "an id that is not UTF-8": b"poison/\xff",
        "an id with a surrogate in bytes": b"poison/\xed\xa0\x80",
        "half a character as id": b"poison/\xc3",
        "too long a namespace": b"p" * 64 + b"/d",
        "too long an id": b"poison/" + b"d" * 513,
        "too long an id in bytes": b"poison/" + "é".encode() * 257,
        "a key as a URL": b"https://example.org/d",
        "a key in JSON": b'{"namespace": "poison", "id": "d"}',
        "a number in bytes as key": struct.pack(">q", 7),
        "a backslash for the slash": b"poison\\d",
        "a colon for the slash": b"poison:d",
        "a key that begins with a slash": b"/poison/d",
        "a long key": b"k" * 20_000,
    }.items():
        yield f"a tombstone: {kind}", key


def _headers(chance: random.Random) -> tuple[tuple[str, bytes], ...]:
    """Of some records: headers say nothing of an event, whatever stands there."""
    choices = [("origin", b"documents-0:0"), ("stamp", b"x"), ("version", b"-1"), ("", b""), ("é", chance.randbytes(9))]
    return tuple(chance.sample(choices, chance.choice([0, 0, 0, 1, 3])))
