"""Work in steps: its items, its end, its errors."""

from __future__ import annotations

import pytest

from ccd_rig.solvers.stepping import Items, result_of


def counted(count):
    """Gives numbers, and returns how many."""
    yield from range(count)
    return count


def test_work_gives_its_items_and_its_end_has_the_result():
    items = Items(counted(2))
    assert ([*items], items.result) == ([0, 1], 2)


@pytest.mark.parametrize("count", [0, 3])
def test_work_is_run_to_its_result(count):
    assert result_of(counted(count)) == count


def test_what_is_raised_is_raised():
    def broken():
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        result_of(broken())
