"""Moments as integers: microseconds since 1970, UTC, exact for every year that Python knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def from_microseconds(moment: int) -> datetime:
    return EPOCH + timedelta(microseconds=moment)
