"""How far one partition of a topic is, in files of our own: what Kafka holds of it is a hint."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from index.errors import WriterFenced
from index.exclusive import create

from .position import NOTHING

KEPT = 3
"""Records that stay, so that one that a power loss has torn has a predecessor."""

_NAME = re.compile(r"(\d{20})\.json")


class Reached(BaseModel):
    """One record of a ledger."""

    model_config = ConfigDict(frozen=True)

    epoch: int
    """Grows with every worker that is assigned the partition; the larger one rules."""
    position: int
    """Everything of the partition up to this offset is in the index and on the disk."""


class Ledger:
    """The ledger of one partition, a folder of numbered records that are created whole and never changed.

    Opening it writes a new epoch before anything else, so whoever held the partition before learns at its next look
    that it must stop. Its writes of namespaces are refused by their manifests; this only ends it early.
    """

    def __init__(self, folder: Path, *, from_start: bool = False) -> None:
        """Take the partition over; with `from_start` as if nothing of it had been read."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            # In this order: a record that comes in between takes the number of ours.
            number, newest = self._next_number(), self._newest()
            position = NOTHING if newest is None or from_start else newest.position
            self.reached = Reached(epoch=1 if newest is None else newest.epoch + 1, position=position)
            # What was written and removed again meanwhile may have left its number free, but not those behind it.
            if self._create(number, self.reached) and self._next_number() == number + 1:
                self._number = number
                return

    @property
    def position(self) -> int:
        """See Reached; NOTHING where the partition is to be read from its beginning, wherever that is by now."""
        return self.reached.position

    def check(self) -> None:
        """Raises WriterFenced where another worker holds the partition by now."""
        if self._next_number() == self._number + 1:
            # Nobody wrote behind us, and whoever takes over does.
            return
        newest = self._newest()
        if newest is not None and newest.epoch > self.reached.epoch:
            raise WriterFenced(
                f"another worker was assigned the partition of {self._folder} (epoch {newest.epoch})",
                hint="nothing is lost; this worker stops and starts again",
            )

    def advance(self, position: int) -> None:
        """Note that everything up to `position` is durable. Raises WriterFenced as `check` does."""
        if position <= self.position:
            return
        reached = Reached(epoch=self.reached.epoch, position=position)
        while True:
            # In this order: whoever takes over in between takes the number of ours, and is seen at the next turn.
            number = self._next_number()
            self.check()
            if self._create(number, reached):
                self._number, self.reached = number, reached
                return

    def _newest(self) -> Reached | None:
        """The record with the largest epoch that can be read, and of those the last."""
        found = []
        for number in self._numbers():
            try:
                record = Reached.model_validate_json(self._path(number).read_bytes())
            except (FileNotFoundError, ValidationError):
                # Removed meanwhile, or torn by a power loss: the one before it says less and nothing wrong.
                continue
            found.append((record.epoch, number, record))
        return max(found, key=lambda one: one[:2])[2] if found else None

    def _create(self, number: int, reached: Reached) -> bool:
        """Add a record, and remove those that are old; False where the number is taken."""
        if not create(self._path(number), reached.model_dump_json().encode()):
            return False
        for old in self._numbers()[:-KEPT]:
            self._path(old).unlink(missing_ok=True)
        return True

    def _next_number(self) -> int:
        return max(self._numbers(), default=0) + 1

    def _numbers(self) -> list[int]:
        return sorted(int(match[1]) for name in os.listdir(self._folder) if (match := _NAME.fullmatch(name)))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:020d}.json"
