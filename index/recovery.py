"""What a crash or a power loss left behind: find the newest state that holds, and continue from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from .errors import StoreError, Torn
from .exclusive import sync
from .graph.segment import Segment, read_segment
from .manifest import Manifest, Manifests
from .records import TABLES, TableName
from .tables import Tables, open_dataset, version_files

SYNCED_AT_ONCE: Final = 8
"""Files that are brought onto the disk at a time: file systems write down what many wait for in one go."""
_POOL = ThreadPoolExecutor(SYNCED_AT_ONCE, "gistream-sync")
"""Shared by all writers of the process; threads that come and go leave their stacks to the C library."""
_MAGIC = b"LANC"
"""The end of every file that Lance has written whole."""


def newest_holding(
    folder: Path, manifests: Manifests, *, durable: int | None = None
) -> tuple[Manifest, dict[str, Segment]]:
    """The newest manifest whose checksum, segments and tables hold, with its segments by name; newer ones go to torn/.

    Their numbers are never used again, and the log still has their events. `durable` is a manifest that this process
    brought onto the disk itself: only the end of the machine could have torn its tables, and they are not read again.
    Raises Torn where none holds.
    """
    reason = "there is no manifest"
    for number in reversed(manifests.numbers()):
        try:
            manifest = manifests.read(number)
            manifest.require_format(folder)
            segments = {file.name: read_segment(folder / "segments", file) for file in manifest.segments}
            if number != durable:
                for name in TABLES:
                    _verify(folder / "tables", name, manifest.tables[name])
            return manifest, segments
        except Torn as torn:
            reason = torn.message
            manifests.set_aside(number)
    raise Torn(
        f"no snapshot of {folder} holds: {reason}",
        hint="restore the folder from a backup, or delete the namespace and feed it again",
    )


def open_tables(folder: Path, manifest: Manifest) -> Tables:
    """The tables exactly as the manifest names them; what was written after it is taken back."""
    tables = Tables(folder / "tables", manifest.fingerprint)
    for name in TABLES:
        newest, path = max(version_files(folder / "tables", name).items())
        if newest > manifest.tables[name] and not _ends_whole(path):
            _drop_after(folder / "tables", name, manifest.tables[name])
    tables.open(manifest.tables)
    return tables


def settle(folder: Path, table: str) -> None:
    """Take a table that no manifest pins back to its newest version that holds; without any, it starts empty again.

    Manifests of versions that do not hold are kept beside the table, under another name.
    """
    for version, path in sorted(version_files(folder, table).items(), reverse=True):
        try:
            _verify(folder, table, version)
            return
        except Torn:
            path.rename(path.with_suffix(".torn"))
            _forget_hint(folder, table)


def sync_since(folder: Path, moment: float) -> None:
    """Bring every file and folder changed since `moment` (seconds since 1970) onto the disk."""
    # Asking for the results raises what one of them raised.
    list(_POOL.map(_sync_if_any, _changed(folder, moment)))


def _sync_if_any(path: str) -> None:
    with suppress(FileNotFoundError):
        sync(path)


def _changed(folder: Path, moment: float) -> Iterator[str]:
    # Clocks of files are coarse, so a file written in the same moment counts as changed.
    since = moment - 1
    for root, _, files in os.walk(folder):
        names = (os.path.join(root, name) for name in files)
        yield from (name for name in names if os.path.exists(name) and os.stat(name).st_mtime >= since)
        if os.stat(root).st_mtime >= since:
            yield root


def _verify(folder: Path, name: str, version: int) -> None:
    """Raise Torn unless a version opens, its files have the length they were written with, and it can be read."""
    path = version_files(folder, name).get(version)
    # Lance itself may end the process where some lengths of its manifest are missing.
    if path is None or not _ends_whole(path):
        raise Torn(f"the manifest of version {version} of table {name} in {folder} is missing or cut short")
    try:
        dataset: Any = open_dataset(folder, name, version)
        for file in (file for fragment in dataset.get_fragments() for file in fragment.metadata.files):
            data = folder / f"{name}.lance" / "data" / file.path
            if not data.exists() or (file.file_size_bytes or data.stat().st_size) != data.stat().st_size:
                raise Torn(f"{data} is missing or cut short")
        for segment in (segment for index in dataset.describe_indices() for segment in index.segments):
            _verify_index(folder / f"{name}.lance" / "_indices" / segment.uuid, segment.size_bytes)
        dataset.to_table(columns=dataset.schema.names[:1])
    except (OSError, ValueError, RuntimeError) as error:
        if "Too many open files" in str(error):
            raise StoreError(
                f"table {name} in {folder} cannot be checked: {error}", hint="raise `ulimit -n`"
            ) from error
        raise Torn(f"version {version} of table {name} in {folder} does not open ({error})") from None


def _verify_index(folder: Path, size: int) -> None:
    """Raise Torn unless the files of one part of an index have their ends, and the size they were written with."""
    files = list(folder.iterdir()) if folder.exists() else []
    if sum(file.stat().st_size for file in files) != size or not all(map(_ends_whole, files)):
        raise Torn(f"the index {folder} is missing or cut short")


def _ends_whole(path: Path) -> bool:
    """Whether a Lance file has its last bytes."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - len(_MAGIC)))
        return file.read() == _MAGIC


def _drop_after(folder: Path, name: TableName, version: int) -> None:
    """Remove the Lance manifests after `version`: nothing committed names them, and the newest is damaged."""
    for later, path in version_files(folder, name).items():
        if later > version:
            path.unlink()
    _forget_hint(folder, name)


def _forget_hint(folder: Path, name: str) -> None:
    """Lance keeps a file that says which version is the newest; it must not name one that is gone."""
    (folder / f"{name}.lance" / "_versions" / "latest_version_hint.json").unlink(missing_ok=True)
