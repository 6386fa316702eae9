"""A folder of text and Markdown files, each file one document."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import Final

from index.errors import InvalidEvent, NotFound
from index.types import DocumentEvent

from ..events import DEFAULT_LIMITS, Limits, validated
from .base import MAX_PAYLOAD, Rejected

SUFFIXES: Final = (".md", ".txt")

_LONGEST_TITLE: Final = 200
"""Characters; a longer heading is a paragraph in disguise, and a title is embedded with every passage."""

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Directory:
    """Every `.txt` and `.md` file below a folder: the files of a folder by name, then its folders.

    A document's id is its path below `root` with `/`, its title the first Markdown heading or else the file's name
    without suffix, its event time the file's time of change, and `metadata["folder"]` the folder it lies in. Hidden
    files and folders are skipped. A link is read where it leads to a file below `root`; links to folders are not
    followed, so that no walk is endless.
    """

    def __init__(self, root: Path, namespace: str, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.name = str(root)
        self._root = root
        self._real_root = os.path.realpath(root)
        self._namespace = namespace
        self._limits = limits

    def read(self) -> Iterator[DocumentEvent | Rejected]:
        if not self._root.is_dir():
            raise NotFound(f"there is no folder {self.name}", hint="name a folder of .txt and .md files")
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    visible = [entry for entry in entries if not entry.name.startswith(".")]
            except OSError as error:
                yield self._rejected(folder, f"this folder cannot be listed: {error.strerror}")
                continue
            visible.sort(key=lambda entry: entry.name)
            folders = [Path(entry.path) for entry in visible if entry.is_dir(follow_symlinks=False)]
            waiting.extend(reversed(folders))
            for entry in visible:
                path = Path(entry.path)
                if path.suffix.lower() in SUFFIXES and not path.is_dir():
                    yield self._document(path)

    def _document(self, path: Path) -> DocumentEvent | Rejected:
        try:
            target = os.path.realpath(path, strict=True)
            if not Path(target).is_relative_to(self._real_root):
                return self._rejected(path, "this link leads out of the folder; copy the file, or read its own folder")
            # Without O_NONBLOCK, opening a named pipe would wait for somebody to write into it.
            with open(os.open(target, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                status = os.fstat(file.fileno())
                if not S_ISREG(status.st_mode):
                    return self._rejected(path, "this is no regular file")
                data = file.read(self._limits.document_bytes + 1)
        except OSError as error:
            return self._rejected(path, f"this file cannot be read: {error.strerror}")
        if len(data) > self._limits.document_bytes:
            reason = f"this file has {status.st_size} bytes, the limit is {self._limits.document_bytes}; split it"
            return self._rejected(path, reason, data)
        if b"\0" in data:
            return self._rejected(path, "this file is binary or UTF-16; save it as UTF-8 text", data)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return self._rejected(path, f"this file is not UTF-8 at byte {error.start}; save it as UTF-8 text", data)
        place = path.relative_to(self._root)
        fields = {
            "namespace": self._namespace,
            "id": place.as_posix(),
            "title": (_heading(text) if path.suffix.lower() == ".md" else "") or path.stem,
            "text": text,
            "metadata": {"folder": "" if place.parent == Path() else place.parent.as_posix()},
            "event_time": datetime.fromtimestamp(status.st_mtime, UTC).isoformat(),
        }
        try:
            return validated(fields, self._limits)
        except InvalidEvent as error:
            return self._rejected(path, str(error), data)

    def _rejected(self, path: Path, reason: str, data: bytes = b"") -> Rejected:
        # A name that is not UTF-8 carries surrogates; a dead letter has to be printable.
        name = path.relative_to(self._root).as_posix().encode(errors="surrogateescape")
        return Rejected(self.name, name.decode(errors="backslashreplace"), reason, data[:MAX_PAYLOAD])


def _heading(markdown: str) -> str:
    """The first heading outside of code fences, "" without one."""
    fence = ""
    for line in markdown.splitlines():
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (heading := _HEADING.fullmatch(line)):
            title = heading[1].rstrip()
            opening, _, last = title.rpartition(" ")
            if not last.strip("#"):  # Markdown lets a heading end in marks that do not belong to it.
                title = opening.rstrip()
            if 0 < len(title) <= _LONGEST_TITLE:
                return title
    return ""
