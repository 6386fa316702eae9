"""Tests of the watchdog: what goes on is left alone, and what stands still ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from index.errors import Stalled
from streams.watchdog import Watchdog


@given(st.lists(st.tuples(st.sampled_from([0, 10, 20, 30, 40]), st.booleans())))
def test_it_bites_after_so_long_without_progress(moments: list[tuple[int, bool]]) -> None:
    now = [0.0]
    watchdog, last = Watchdog(30.0, lambda: now[0]), 0.0
    for seconds, progress in moments:
        now[0] += seconds
        verdict = watchdog.verdict()
        assert (verdict is None) == (now[0] - last < 30)
        if verdict is not None:
            assert isinstance(verdict, Stalled) and verdict.recoverable
            assert f"for {now[0] - last:.0f} s" in str(verdict)
        if progress:
            watchdog.progress()
            last = now[0]
