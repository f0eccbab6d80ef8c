"""Work in steps: its items, its end, its errors."""

from __future__ import annotations

import pytest

from ccd_rig.solvers.stepping import Ended, advance, result_of


def answered(count):
    """Gives numbers, and returns what it was sent for them."""
    answers = []
    for k in range(count):
        answers.append((yield k))
    return answers


def test_items_are_answered_and_the_end_has_the_result():
    steps = answered(2)
    assert advance(steps) == 0
    assert advance(steps, "a") == 1
    assert advance(steps, "b") == Ended(["a", "b"])
    assert advance(steps) == Ended(None)  # a generator that is over has nothing more to say


@pytest.mark.parametrize("count", [0, 3])
def test_work_that_needs_no_answers(count):
    assert result_of(answered(count)) == [None] * count


def test_what_is_raised_is_raised():
    def broken():
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        result_of(broken())
