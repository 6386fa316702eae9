"""The indexes of the tables: which rows are found how, made and kept up to date between commits by the writer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from .limits import WORDS_ABOVE
from .records import TableName
from .stored import ROWS_PER_PARTITION

# Lance would list every centroid where it is asked how an index was trained.
os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")

KEYS: Final = "key_idx"
NEAREST: Final = "vector_idx"
WORDS: Final = {"text": "text_idx", "title": "title_idx"}
"""Full text of passages, by column."""
SEARCHED: Final[Sequence[TableName]] = ("passages", "facts")
"""Tables whose nearest vectors are asked for."""

LEAVE: Final = 0.75
"""Share of `exact_max` below which what was left to an index is compared one by one again; half of it drops the index.

Between the two nothing changes, so a table whose size sways does not go to and fro.
"""
RETRAIN: Final = 4
"""An index is trained anew when its table has so many times the rows that it was trained for."""
MERGED_KEYS: Final = 8

Step = Literal["none", "added", "trained", "dropped"]


class Upkeep(NamedTuple):
    """What was done to an index, and how many rows that brought into it."""

    step: Step
    rows: int = 0


NONE: Final = Upkeep("none")


def has_index(dataset: Any, name: str) -> bool:
    return any(index.name == name for index in dataset.describe_indices())


def keep_keys(dataset: Any) -> None:
    """Bring the index of keys up to date, or make it."""
    if has_index(dataset, KEYS):
        dataset.optimize.optimize_indices(index_names=[KEYS], num_indices_to_merge=MERGED_KEYS)
    else:
        dataset.create_scalar_index("key", index_type="BTREE", name=KEYS)


def keep_nearest(dataset: Any, rows: int, exact_max: int) -> Upkeep:
    """Bring the vector index of a table of so many rows up to date; one is there above `exact_max`.

    New rows are a delta of the index, and deltas are merged as they grow, so a row is written about log2(N) times.
    """
    if not has_index(dataset, NEAREST):
        return _train(dataset, rows) if rows > exact_max else NONE
    if rows <= exact_max // 2:
        dataset.drop_index(NEAREST)
        return Upkeep("dropped")
    stats = dataset.stats.index_stats(NEAREST)
    trained = stats["indices"][0]["num_partitions"] * ROWS_PER_PARTITION
    # What Lance says of rows leaves out those that died since; these sizes do not.
    deltas = [sum(partition["size"] for partition in delta["partitions"]) for delta in stats["indices"]]
    if rows > RETRAIN * trained or sum(deltas) > 2 * rows:
        return _train(dataset, rows)
    fresh = stats["num_unindexed_rows"]
    if not fresh:
        return NONE
    dataset.optimize.optimize_indices(index_names=[NEAREST], num_indices_to_merge=merged(deltas, fresh))
    return Upkeep("added", fresh)


def keep_words(dataset: Any, rows: int) -> Upkeep:
    """Bring the full text indexes of the passages up to date; they are there above WORDS_ABOVE rows."""
    done = NONE
    for column, name in WORDS.items():
        if has_index(dataset, name):
            stats = dataset.stats.index_stats(name)
            if fresh := stats["num_unindexed_rows"]:
                deltas = [segment["num_docs"] for segment in stats["segments"]]
                dataset.optimize.optimize_indices(index_names=[name], num_indices_to_merge=merged(deltas, fresh))
                done = Upkeep("added", fresh)
        elif rows > WORDS_ABOVE:
            dataset.create_scalar_index(
                column, index_type="INVERTED", name=name, with_position=True, base_tokenizer="simple",
                lower_case=True, stem=False, remove_stop_words=False, ascii_folding=False, max_token_length=None,
            )  # fmt: skip
            done = Upkeep("trained", rows)
    return done


def merged(deltas: Sequence[int], fresh: int) -> int:
    """How many of an index's deltas (rows of each, oldest first) are merged with so many fresh rows.

    Those of no more rows than what is merged so far: each is then at least twice as large as the next, and there are
    about log2(N).

    >>> merged([200_000, 8_000, 3_000, 1_000], 2_000)
    2
    """
    count, rows = 0, fresh
    for delta in reversed(deltas):
        if delta > rows:
            break
        count, rows = count + 1, rows + delta
    return count


def _train(dataset: Any, rows: int) -> Upkeep:
    partitions = max(1, rows // ROWS_PER_PARTITION)
    dataset.create_index("vector", "IVF_RQ", name=NEAREST, metric="dot", num_partitions=partitions, replace=True)
    return Upkeep("trained", rows)
