"""Samples of a limit are spread evenly over what it allows."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np
import pytest
from chains import EXACT
from mathutils import Quaternion
from random_limits import PI

from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, Limit, SwingTwist, contains, sample
from ccd_rig.maths.rotations import angle_of


def test_samples_without_a_limit_are_uniform():
    rng = random.Random(0)
    rotations = np.array([sample(None, rng) for _ in range(20000)])
    assert np.abs(np.linalg.norm(rotations, axis=1) - 1.0).max() < EXACT
    # The second moments of a uniform quaternion are 1/4 each, the mixed ones 0; 5 standard errors.
    assert np.abs(rotations.T @ rotations / 20000 - np.eye(4) / 4).max() < 5 * 0.25 / math.sqrt(20000)
    # The angle of a uniform rotation has the distribution (angle - sin angle) / pi.
    angles = np.sort([angle_of(Quaternion(r)) for r in rotations])
    assert np.abs((angles - np.sin(angles)) / PI - np.arange(20000) / 20000).max() < 1.95 / math.sqrt(20000)


def uniform_inside(limit: Limit, rng: random.Random, count: int) -> Iterator[Quaternion]:
    """By rejection from all rotations: uniform, slow, and free of what `sample` does."""
    while count:
        rotation = sample(None, rng)
        if contains(limit, rotation):
            count -= 1
            yield rotation


@pytest.mark.parametrize(
    "limit",
    [
        SwingTwist(Cone(2.0), (-1.0, 2.0)),
        SwingTwist(Ellipse(-1.5, 2.5, -0.9, 3.0), (-2.0, 1.5), (1, 1, 0)),
        SwingTwist(None, (0.5, 2.5)),
        EulerBox("ZXY", (-1.0, -2.0, -0.5), (1.4, 1.0, 3.0)),
        EulerBox("XYZ", (-2.0, 0.5, -2.0), (1.0, 2.6, 3.0)),
    ],
)
def test_samples_are_spread_as_evenly_as_by_rejection(limit: Limit):
    rng = random.Random(11)
    count = 4000
    drawn = np.array([tuple(sample(limit, rng)) for _ in range(count)])
    even = np.array([tuple(rotation) for rotation in uniform_inside(limit, rng, count)])
    # Second moments are free of signs; 5 standard errors of a difference of means of numbers within +-1.
    assert np.abs(drawn.T @ drawn - even.T @ even).max() / count < 5 * 0.35 * math.sqrt(2 / count)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.5), (-1.2, 1.2), (0.5, 2.6), (PI / 2, PI / 2)])
def test_samples_of_a_box_weigh_the_middle_angle_by_its_cosine(low: float, high: float):
    rng = random.Random(9)
    count = 4000
    limit = EulerBox("XYZ", (-1.0, low, -1.0), (1.0, high, 1.0))
    sines = np.array([-sample(limit, rng).to_matrix()[2][0] for _ in range(count)])
    # Even in the measure of rotations is even in the sine of the middle angle; past the pole it comes down
    # again.
    rising, falling = math.sin(min(high, PI / 2)) - math.sin(low), max(1.0 - math.sin(high), 0.0)
    falling = falling if high > PI / 2 else 0.0
    if rising + falling < EXACT:
        assert np.abs(sines - math.sin(low)).max() < EXACT
        return
    middle_of = (math.sin(low) + math.sin(min(high, PI / 2))) / 2, (1.0 + math.sin(high)) / 2
    mean = (rising * middle_of[0] + falling * middle_of[1]) / (rising + falling)
    assert abs(float(sines.mean()) - mean) < 5 * float(sines.std()) / math.sqrt(count)


def test_samples_of_a_hinge_fill_its_range():
    rng = random.Random(4)
    drawn = [sample(Hinge((1, 0, 0), 0.2, 1.2), rng) for _ in range(4000)]
    angles = [math.remainder(2 * math.atan2(q.x, q.w), 2 * PI) for q in drawn]
    assert 0.2 - EXACT < min(angles) < 0.21
    assert 1.19 < max(angles) < 1.2 + EXACT
    assert abs(float(np.mean(angles)) - 0.7) < 5 * 0.29 / math.sqrt(4000)
