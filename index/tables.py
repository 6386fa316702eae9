"""The LanceDB tables of one namespace as its writer sees them: every operation must make exactly the next version."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc

from .errors import StoreError
from .manifest import Fingerprint
from .records import TABLES, TableName, schemas
from .types import Key

KEYS_PER_FILTER = 1_000
"""Longer lists of keys are read or deleted by several filters; planning a filter costs time in proportion to its
length.
"""

_FEW_TIMES = 4
"""Reading so many rows for each that is wanted is cheaper than looking for them first."""
INDEX_CACHE_BYTES = 512 * 2**20
"""Of indexes, in memory: codes of about 2 million vectors of 384 dimensions."""
METADATA_CACHE_BYTES = 8 * 2**20
"""Of files and versions: some 75 commits. It fills with what is never asked for again: neither reading nor writing is
faster with more.
"""

_LAST_VERSION = 2**64 - 1
"""Lance names the manifest of version v by 2**64 - 1 - v, so that the newest sorts first."""


class VersionGap(StoreError):
    """An operation did not make exactly the next version: someone else wrote to the table."""


class Tables:
    """The pinned tables of a namespace; `versions` is what the next manifest will name.

    One thread at a time uses a table; different tables may be used side by side. Nothing here decides what is
    committed: rows that no manifest names do not exist.
    """

    def __init__(self, folder: Path, made: Fingerprint) -> None:
        self.folder = folder
        self.schemas = schemas(made.dimensions, entity_vectors=made.alias_threshold is not None)
        self.versions: dict[TableName, int] = {}
        self._tables: dict[TableName, Any] = {}
        self._database = connect(folder)

    def create(self) -> None:
        """Make every table, empty."""
        for name in TABLES:
            self._tables[name] = self._database.create_table(name, schema=self.schemas[name], mode="overwrite")
            self.versions[name] = self._tables[name].version

    def open(self, versions: Mapping[TableName, int]) -> None:
        """Open every table exactly as `versions` says.

        A table that has moved on since is restored, which makes a new version.
        """
        for name in TABLES:
            table = self._database.open_table(name)
            if table.version != versions[name]:
                table.checkout(versions[name])
                table.restore()
            self._tables[name] = table
            self.versions[name] = table.version

    def add(self, name: TableName, rows: pa.Table) -> None:
        if rows.num_rows:
            with _conflicts(name):
                version = self._tables[name].add(rows).version
            self._advance(name, version)

    def delete(self, name: TableName, keys: Sequence[Key]) -> None:
        for start in range(0, len(keys), KEYS_PER_FILTER):
            with _conflicts(name):
                version = self._tables[name].delete(key_filter(keys[start : start + KEYS_PER_FILTER])).version
            self._advance(name, version)

    def read(self, name: TableName, keys: Sequence[Key], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Rows with these keys, in no particular order."""
        return read_rows(self.dataset(name), keys, columns)

    def versions_on_disk(self, name: TableName) -> list[int]:
        """Every version that can still be opened, ascending."""
        return sorted(version_files(self.folder, name))

    def dataset(self, name: TableName) -> Any:
        """The table at its current version, for reading and maintenance."""
        return open_dataset(self.folder, name, self.versions[name])

    def adopt(self, name: TableName, dataset: Any, rows: int) -> None:
        """Continue from the version that maintenance brought `dataset` to; it must hold the `rows` it held before."""
        self._tables[name].checkout_latest()
        if dataset.count_rows() != rows or self._tables[name].version != dataset.version:
            raise VersionGap(f"table {name} in {self.folder} was changed by another writer during maintenance")
        self.versions[name] = dataset.version

    def _advance(self, name: TableName, version: int) -> None:
        if version != self.versions[name] + 1:
            raise VersionGap(
                f"table {name} in {self.folder} went to version {version} and not {self.versions[name] + 1}: "
                "another writer touched it"
            )
        self.versions[name] = version


def connect(folder: Path) -> Any:
    """The LanceDB database in a folder, for writing; those who only read use Lance itself (`open_dataset`)."""
    # It chooses what to log when it is imported, and would warn of every table that it makes. Readers, which never come
    # here, are spared a second of importing as well.
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb

    return lancedb.connect(str(folder), session=_writing_session())


@contextmanager
def _conflicts(name: TableName) -> Iterator[None]:
    """LanceDB has no typed errors for a lost race; this is the one place that knows their wording."""
    try:
        yield
    except RuntimeError as error:
        if any(word in str(error) for word in ("Incompatible transaction", "commit conflict", "concurrent writers")):
            raise VersionGap(f"table {name} was changed by another writer ({error})") from error
        raise


def open_dataset(folder: Path, name: str, version: int | None = None) -> Any:
    """A table at one version, the newest where none is given; the version never changes under its reader."""
    return lance.dataset(str(folder / f"{name}.lance"), version=version, session=_session())


@cache
def _session() -> Any:
    """What all datasets of the process share: parts of indexes once read serve the next versions as well."""
    make: Any = lance.Session  # type: ignore[attr-defined]
    return make(index_cache_size_bytes=INDEX_CACHE_BYTES, metadata_cache_size_bytes=METADATA_CACHE_BYTES)


@cache
def _writing_session() -> Any:
    """What all writers of the process share. Without it each has a cache of its own, a gigabyte before it is full."""
    import lancedb

    return lancedb.Session(index_cache_size_bytes=INDEX_CACHE_BYTES, metadata_cache_size_bytes=METADATA_CACHE_BYTES)


def version_files(folder: Path, name: str) -> dict[int, Path]:
    """Lance's manifest file of every version of a table."""
    paths = (folder / f"{name}.lance" / "_versions").glob("*.manifest")
    return {_LAST_VERSION - int(path.stem): path for path in paths if path.stem.isdigit()}


def key_filter(keys: Sequence[Key]) -> str:
    listed = ",".join(f"X'{key.hex()}'" for key in keys)
    return f"key IN ({listed})"


def read_rows(dataset: Any, keys: Sequence[Key], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Rows of a pinned dataset with these keys, in no particular order."""
    rows: list[dict[str, Any]] = []
    for part in _read(dataset, keys, columns):
        rows += part.to_pylist()
    return rows


def read_columns(dataset: Any, keys: Sequence[Key], columns: Sequence[str]) -> pa.Table:
    """The rows that `read_rows` gives (of at least one key), as columns: the way to read vectors."""
    return pa.concat_tables(_read(dataset, keys, columns))


def _read(dataset: Any, keys: Sequence[Key], columns: Sequence[str] | None) -> Iterator[pa.Table]:
    for start in range(0, len(keys), KEYS_PER_FILTER):
        try:
            yield dataset.to_table(
                columns=columns and list(columns), filter=key_filter(keys[start : start + KEYS_PER_FILTER])
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise StoreError(f"{dataset.uri} cannot be read at version {dataset.version}: {error}") from error


def read_among(dataset: Any, fragments: Sequence[Any], keys: Sequence[Key], columns: Sequence[str]) -> pa.Table:
    """These columns, `key` among them, of the rows with these keys that are in the given fragments, in no order.

    A compacted fragment may hold thousands of rows for one that is asked for: then only the keys of all are read.
    """
    if not fragments:
        return dataset.schema.empty_table().select(columns)
    wanted = pa.array(keys, pa.binary(16))
    if sum(fragment.count_rows() for fragment in fragments) <= _FEW_TIMES * len(keys):
        rows = dataset.scanner(columns=columns, fragments=fragments).to_table()
        found = pc.is_in(rows["key"], value_set=wanted)
        # A filter copies, and when a reader is opened everything is wanted.
        return rows if pc.all(found).as_py() else rows.filter(found)
    known = dataset.scanner(columns=["key"], fragments=fragments, with_row_address=True).to_table()
    places = known.filter(pc.is_in(known["key"], value_set=wanted))["_rowaddr"]
    # Lance has no public way to read rows by address; a filter over the keys takes five times as long to plan.
    return dataset._take_rows(places.to_pylist(), columns=columns)
