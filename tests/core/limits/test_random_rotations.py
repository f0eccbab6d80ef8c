"""Random rotations inside limits."""

from __future__ import annotations

import math
import random

import pytest

from ccd_rig.limits.shapes import Cone, Ellipse, SwingTwist, sample


@pytest.mark.parametrize("swing", [Cone(0.5), Ellipse(-0.5, 0.5, -0.2, 0.4), None])
def test_a_free_twist_goes_all_the_way_round(swing):
    rng = random.Random(3)
    twists = []
    for _ in range(400):
        rotation = sample(SwingTwist(swing, None), rng)
        twists.append(math.remainder(2.0 * math.atan2(rotation.y, rotation.w), 2.0 * math.pi))
    for quarter in range(4):
        first = -math.pi + 0.5 * math.pi * quarter
        share = sum(first <= twist < first + 0.5 * math.pi for twist in twists) / len(twists)
        assert share == pytest.approx(0.25, abs=0.08)
