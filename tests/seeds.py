"""Seeds of random cases: a few in every run, all of them in runs with mass tests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def few_and_all(few: int, count: int, shares: int = 1) -> list[object]:
    """Parameters of a test over seeds: `range(few)`, and as mass tests the others below `count`.

    Args:
        few: seeds of every run.
        count: seeds of a run with mass tests.
        shares: tests among which the others are divided.
    """
    step = -(-(count - few) // shares)
    rest = [range(first, min(first + step, count)) for first in range(few, count, step)]
    return [
        pytest.param(range(few), id=f"0-{few - 1}"),
        *(pytest.param(each, id=f"{each[0]}-{each[-1]}", marks=pytest.mark.mass) for each in rest),
    ]


def few_of(values: Sequence[object], few: int) -> list[object]:
    """Parameters of a test: the first `few` values, and the others as mass tests."""
    return [*values[:few], *(pytest.param(each, marks=pytest.mark.mass) for each in values[few:])]
