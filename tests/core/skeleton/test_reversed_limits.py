"""Limits seen from the other side: those of the inverse rotation."""

from __future__ import annotations

import math
import random

import pytest
from chains import FLOAT32, random_limit, random_rotation
from mathutils import Quaternion
from seeds import few_of

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.shapes import (
    Comfort,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    ReversedLimit,
    Slide,
    SwingTwist,
    as_hinge,
    clamp,
    contains,
    limit_row,
    sample,
    violation,
)
from ccd_rig.skeleton.rerooting import reverse_limit


@pytest.mark.parametrize("seed", few_of(range(200), 50))
def test_reversed_is_the_limit_of_the_inverse(seed):
    rng = random.Random(seed)
    limit = random_limit(rng)
    if limit is None:
        limit = EulerBox("YXZ", (-1.0, 0.2, -0.4), (0.5, 1.0, 0.1))
    frame, q = random_rotation(rng), random_rotation(rng)
    p = (frame.conjugated() @ q @ frame).conjugated()
    for other in (ReversedLimit(limit, frame), reverse_limit(limit, frame)):
        assert violation(other, q) == pytest.approx(violation(limit, p), abs=FLOAT32)
        assert contains(other, q, FLOAT32) or not contains(limit, p)
        assert violation(other, sample(other, rng)) <= FLOAT32
        clamped = clamp(other, q)
        assert violation(limit, (frame.conjugated() @ clamped @ frame).conjugated()) <= FLOAT32
        assert clamp(other, clamped) is clamped


def test_reversed_kinds():
    frame = random_rotation(random.Random(3))
    assert isinstance(reverse_limit(Hinge((1.0, 0.0, 0.0), 0.1, 2.0), frame), Hinge)
    assert isinstance(reverse_limit(SwingTwist(Cone(0.4), (-0.1, 0.6)), frame), SwingTwist)
    assert isinstance(reverse_limit(SwingTwist(None, (-0.1, 0.6)), frame), SwingTwist)
    ellipse = SwingTwist(Ellipse(-0.1, 0.5, -0.2, 0.9))
    there = reverse_limit(ellipse, frame)
    assert isinstance(there, ReversedLimit)
    assert reverse_limit(there, frame.conjugated()) == ellipse
    assert isinstance(reverse_limit(there, frame), ReversedLimit)  # another frame: reversed twice
    assert reverse_limit(None, frame) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Slide((0, 0, 0), 0.0, 1.0), "Slide.axis is zero"),
        (lambda: Slide((0, 1, 0), 1.0, 0.0), "lower .* above upper .*model's unit"),
        (lambda: Slide((0, 1, 0), math.nan, 0.0), "Slide.lower"),
        (lambda: Comfort(0.0, "region"), "Comfort.region"),
    ],
)
def test_bad_values_are_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_slide_is_a_value():
    slide = Slide((0.0, 2.0, 0.0), -1, 3)
    assert slide == Slide((0.0, 1.0, 0.0), -1.0, 3.0)
    assert Comfort(0.0, ReversedLimit(Hinge((1, 0, 0), 0, 1), (1.0, 0.0, 0.0, 0.0))).region is not None


def test_limits_of_one_angle_are_hinges_for_the_kernel():
    frame, other = (0.5, 0.5, 0.5, 0.5), (0.6, 0.0, -0.8, 0.0)
    for limit in (
        Hinge((0.0, 0.6, 0.8), -0.3, 1.2),
        SwingTwist(Cone(0.0), (-0.3, 1.2), (0.0, 0.6, 0.8)),
        EulerBox("ZXY", (0.0, -0.3, 0.0), (0.0, 1.2, 0.0)),
    ):
        for seen in (limit, ReversedLimit(limit, frame), ReversedLimit(ReversedLimit(limit, frame), other)):
            hinge = as_hinge(seen)
            assert hinge is not None
            assert limit_row(seen)[0] == limit_row(hinge)[0] == 1.0
            assert limit_row(seen)[14] == 0.0
            for turn in (-0.3, 0.4, 1.2):
                assert contains(seen, Quaternion(hinge.axis, turn if hinge.upper == 1.2 else -turn))
    assert limit_row(None)[0] == 0.0
    assert as_hinge(SwingTwist(Cone(0.1))) is None
