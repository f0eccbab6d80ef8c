"""Feet over the ground: what `clearing` lifts them by is what geometry asks for."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ccd_rig.motion.ground import clearing


@pytest.mark.parametrize("seed", range(5))
def test_the_lowest_point_is_as_clear_as_animated(seed: int) -> None:
    """Each point that has ground below it is at least that far above, and one of them just so."""
    rng = random.Random(seed)
    points = np.array([[rng.uniform(-0.3, 0.3) for _ in range(20)] for _ in range(4)])
    heights = np.array([[rng.uniform(-0.5, 0.5) for _ in range(20)] for _ in range(4)])
    heights[rng.randrange(4), ::3] = np.nan
    clear = np.array([rng.uniform(-0.2, 0.4) for _ in range(20)])
    lifted = points + clearing(heights, points, clear, 0.1)
    gaps = np.nanmin(lifted - heights, axis=0)
    np.testing.assert_allclose(gaps, [min(max(each, 0.0), 0.1) for each in clear], atol=1e-12)


def test_over_a_hole_nothing_is_asked_for() -> None:
    holes = np.full((2, 1), np.nan)
    assert clearing(holes, np.zeros((2, 1)), np.zeros(1), 0.1)[0] == -np.inf
