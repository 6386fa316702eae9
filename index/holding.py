"""Which vectors a reader holds in memory and which it leaves in their table, and how it goes from one to the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import records
from .cosine import Float32s, Int64s, Vectors
from .indexes import LEAVE, NEAREST, has_index
from .numbers import Numbers
from .stored import StoredVectors
from .vectors import VectorTable


def leaves(held: Vectors, dataset: Any, rows: int, exact_max: int) -> bool:
    """Whether the vectors of a table of so many rows are left in it: above `exact_max`, once its writer has indexed it.

    Those that were left stay there until the table has shrunk to LEAVE of that.
    """
    if isinstance(held, StoredVectors):
        return rows > LEAVE * exact_max
    return rows > exact_max and has_index(dataset, NEAREST)


def moved(
    held: Vectors, dataset: Any, numbers: Numbers, born: Int64s, dead: Int64s, vectors: Float32s | None
) -> Vectors:
    """The next version of what is held, for a table in which items were born (m,) and died (n,).

    `vectors` (m, d) are those of the born; None leaves all of them in the table. Going from one to the other costs a
    byte an item, or reading all vectors of the table.
    """
    dead = dead[held.has(dead)]
    if vectors is None:
        stored = held if isinstance(held, StoredVectors) else _left(held, dataset, numbers)
        return stored.moved(dataset, born, dead)
    if isinstance(held, VectorTable):
        return held.extend(born, vectors, held.rows_of(dead))
    rows = dataset.to_table(columns=["key", "vector"])
    return VectorTable.empty(vectors.shape[1]).extend(
        numbers.of(rows["key"].to_pylist()), records.matrix(rows["vector"])
    )


def _left(held: Vectors, dataset: Any, numbers: Numbers) -> StoredVectors:
    items = np.arange(len(numbers))
    return StoredVectors(dataset, numbers, held.has(items))
