"""Long work in parts: the same result, items in time, and an end when it is not wanted any more."""

from __future__ import annotations

import threading
import time

import pytest

from ccd_rig.solvers.pauses import in_parts, pause


def busy(steps: int, seen: list[int], seconds: float = 0.01) -> str:
    for step in range(steps):
        pause()
        seen.append(step)
        time.sleep(seconds)
    return "done"


def result_of(parts):
    """(items, what the work returned)."""
    items = 0
    while True:
        try:
            next(parts)
        except StopIteration as end:
            return items, end.value
        items += 1


def test_the_result_comes_after_some_items():
    seen: list[int] = []
    items, result = result_of(in_parts(lambda: busy(10, seen), 0.03))
    assert (result, seen) == ("done", list(range(10)))
    assert 2 <= items <= 9


def test_short_work_has_no_items():
    assert result_of(in_parts(lambda: busy(3, [], 0.0), 10.0)) == (0, "done")


def test_outside_of_parts_a_pause_is_nothing():
    assert busy(3, [], 0.0) == "done"


def test_the_work_stands_still_between_items():
    seen: list[int] = []
    parts = in_parts(lambda: busy(20, seen), 0.02)
    next(parts)
    before = len(seen)
    time.sleep(0.1)
    assert len(seen) == before
    parts.close()


def test_closed_it_ends_at_the_next_pause():
    seen: list[int] = []
    threads = threading.active_count()
    parts = in_parts(lambda: busy(1000, seen), 0.02)
    next(parts)
    parts.close()
    assert len(seen) < 20
    assert threading.active_count() == threads


def test_what_it_raises_is_raised_here():
    def fail():
        pause()
        raise KeyError("hand")

    with pytest.raises(KeyError, match="hand"):
        result_of(in_parts(fail))


def test_no_except_keeps_it_from_ending():
    def stubborn():
        for _ in range(1000):
            try:
                pause()
                time.sleep(0.01)
            except Exception:
                raise AssertionError("it was told as an error") from None
        return "done"

    parts = in_parts(stubborn, 0.02)
    next(parts)
    parts.close()
