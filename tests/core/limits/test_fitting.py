"""Limits fitted to rotations: they hold them, are no wider than they must be, and know a hinge."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from mathutils import Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.fitting import comfort_region, fit
from ccd_rig.limits.settings import FitSettings
from ccd_rig.limits.shapes import Cone, Ellipse, Hinge, SwingTwist, contains, outside, sample
from ccd_rig.maths.rotations import exp

FLOAT32 = 2e-6
DEGREE = math.radians(1.0)
EXACT = FitSettings(margin=0.0)
SHOULDER = SwingTwist(Ellipse(-0.4, 1.3, -0.9, 0.6), (-0.5, 0.8))


def drawn(limit, count=400, seed=2):
    rng = random.Random(seed)
    return [sample(limit, rng) for _ in range(count)]


def bending(axis, degrees, off=0.0, seed=4):
    """Rotations about an axis at these angles, each off it by so much."""
    rng = random.Random(seed)
    axis = Vector(axis).normalized()
    for angle in degrees:
        aside = axis.cross(Vector([rng.gauss(0, 1) for _ in range(3)])).normalized()
        yield exp(aside * math.radians(off)) @ exp(axis * math.radians(angle))


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 0, 1), (0.85, 0.0, 0.53), (0.5, -0.3, 0.6)])
@pytest.mark.parametrize(("lower", "upper"), [(5, 78), (-30, 60), (-120, -40)])
def test_a_hinge_is_found(axis, lower, upper):
    found = fit(list(bending(axis, range(lower, upper + 1))), FitSettings(margin=5 * DEGREE))
    assert isinstance(found, Hinge)
    assert Vector(found.axis).dot(Vector(axis).normalized()) == pytest.approx(1.0, abs=FLOAT32)
    assert math.degrees(found.lower) == pytest.approx(lower - 5, abs=1e-3)
    assert math.degrees(found.upper) == pytest.approx(upper + 5, abs=1e-3)


def test_the_axis_of_a_hinge_snaps_while_its_rotations_stay_near():
    near = list(bending((1.0, 0.05, 0.0), range(80)))
    assert fit(near).axis == (1.0, 0.0, 0.0)
    assert fit(near, FitSettings(snap_angle=0.0)).axis != (1.0, 0.0, 0.0)
    # 11 degrees off: snapped, the ends of the range would be 14 degrees off the axis.
    far = fit(list(bending((1.0, 0.2, 0.0), range(80))))
    assert far.axis[1] == pytest.approx(0.2 / math.hypot(1.0, 0.2), abs=1e-4)


@pytest.mark.parametrize(("degrees", "snaps"), [(11.5, True), (12.5, False)])
def test_an_axis_snaps_within_twelve_degrees(degrees, snaps):
    """Of a small motion: its rotations stay near whatever the axis."""
    axis = (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0.0)
    found = fit(list(bending(axis, range(-10, 11))))
    assert isinstance(found, Hinge)
    assert (found.axis == (1.0, 0.0, 0.0)) == snaps


@pytest.mark.parametrize(("off", "kind"), [(4.0, Hinge), (5.5, Hinge), (6.5, SwingTwist), (9.0, SwingTwist)])
def test_how_far_off_its_axis_a_hinge_may_be(off, kind):
    assert isinstance(fit(list(bending((1, 0, 0), range(80), off))), kind)


def test_a_small_motion_beside_its_axis_is_no_hinge():
    assert isinstance(fit(list(bending((1, 0, 0), range(10), off=4.0))), SwingTwist)


@pytest.mark.parametrize("seed", range(5))
def test_a_swing_with_twist_holds_all_samples(seed):
    rotations = drawn(SHOULDER, seed=seed)
    found = fit(rotations, EXACT)
    assert isinstance(found, SwingTwist)
    assert all(contains(found, rotation, FLOAT32) for rotation in rotations)
    sides, true = found.swing, SHOULDER.swing
    for name in ("x_lower", "x_upper", "z_lower", "z_upper"):
        assert 0.85 < getattr(sides, name) / getattr(true, name) < 1.15
    assert found.twist == pytest.approx(SHOULDER.twist, abs=0.02)


def test_a_margin_is_added_at_every_side():
    rotations = drawn(SHOULDER)
    exact, wider = fit(rotations, EXACT), fit(rotations, FitSettings(margin=0.1))
    for name in ("x_lower", "z_lower"):
        assert getattr(wider.swing, name) == pytest.approx(getattr(exact.swing, name) - 0.1)
    for name in ("x_upper", "z_upper"):
        assert getattr(wider.swing, name) == pytest.approx(getattr(exact.swing, name) + 0.1)
    assert wider.twist == pytest.approx((exact.twist[0] - 0.1, exact.twist[1] + 0.1))


def test_a_percentile_leaves_out_what_is_rare():
    rotations = [*bending((1, 0, 0), np.linspace(0, 60, 98)), *bending((1, 0, 0), (140, 150))]
    assert math.degrees(fit(rotations, EXACT).upper) == pytest.approx(150, abs=1e-3)
    assert math.degrees(fit(rotations, FitSettings(margin=0.0, percentile=95.0)).upper) < 61
    swings = [*drawn(SHOULDER, 396), *drawn(SwingTwist(Ellipse(-2, 2, -2, 2), (-0.5, 0.8)), 4)]
    learned = fit(swings, FitSettings(margin=0.0, percentile=95.0))
    share = np.mean([contains(learned, rotation, FLOAT32) for rotation in swings])
    assert 0.85 < share < 0.97
    assert fit(swings, EXACT).swing.x_lower < -1.5 < -0.6 < learned.swing.x_lower


def test_signs_of_quaternions_do_not_matter():
    rotations = drawn(SHOULDER)
    flipped = [-q if i % 3 else q for i, q in enumerate(rotations)]
    assert fit(flipped, EXACT) == fit(rotations, EXACT)


@pytest.mark.parametrize(
    ("rotations", "words"),
    [
        (list(bending((1, 0.4, 0.8), range(120, 175), 9.0)), "up to 17. degrees away from rest"),
        (list(bending((1, 0, 0), range(70, 120), 20.0)), "at least .* degrees away from rest"),
        (list(bending((1, 0, 0), (30.0, 30.1, 30.2))), "does not move"),
        ([(1.0, 0.0, 0.0, math.nan)], "rotation 0 is not"),
        ([(1.0, 0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 0.0)], "rotation 1 is not"),
    ],
)
def test_what_says_nothing_is_refused(rotations, words):
    with pytest.raises(InvalidInput, match=words):
        fit(rotations)


def test_a_hinge_need_not_be_near_rest():
    assert isinstance(fit(list(bending((1, 0, 0), range(70, 120)))), Hinge)


@pytest.mark.parametrize("field", ["margin", "percentile", "hinge_tolerance"])
@pytest.mark.parametrize("value", [-1.0, math.nan, 400.0])
def test_settings_are_checked(field, value):
    with pytest.raises(InvalidInput, match=field):
        FitSettings(**{field: value})


def test_the_comfort_region_of_a_hinge_is_the_middle_of_its_angles():
    rotations = list(bending((1, 0, 0), range(101)))
    limit = fit(rotations, EXACT)
    region = comfort_region(rotations, limit, EXACT)
    assert region.axis == limit.axis
    assert [region.lower / DEGREE, region.upper / DEGREE] == pytest.approx([10.0, 90.0], abs=0.01)
    none = FitSettings(margin=0.0, comfort=0.0)
    assert comfort_region(rotations, limit, none) is None


def test_the_comfort_region_of_a_swing_holds_most_of_it_and_lies_inside():
    rotations = drawn(SHOULDER)
    limit = fit(rotations)
    region = comfort_region(rotations, limit)
    assert outside(region, limit) is None
    held = np.mean([contains(region, rotation, 0.0) for rotation in rotations])
    assert 0.55 < held < 0.85  # four fifths of the swings, four fifths of the twists


def test_a_limit_without_rare_extremes_is_nowhere_wider():
    """A joint that is to one side nearly always: 1 frame in 12 is to the other, about either axis."""
    rng, rotations = random.Random(1), []
    for k in range(600):
        x, z = rng.uniform(0.0, 1.0), rng.uniform(0.0, 0.6)
        x, z = (-0.2 * x if k % 12 == 0 else x), (-0.3 * z if k % 12 == 1 else z)
        rotations.append(exp(Vector((x, rng.uniform(-0.2, 0.2), z))))
    swings = [fit(rotations, FitSettings(margin=0.0, percentile=each)).swing for each in (100.0, 90.0)]
    for name in ("x_lower", "x_upper", "z_lower", "z_upper"):
        whole, most = (abs(getattr(swing, name)) for swing in swings)
        assert 0.5 * whole < most < whole


@pytest.mark.parametrize("rotations", [list(bending((1, 0, 0), range(101))), drawn(SHOULDER)])
def test_comfort_is_no_wider_than_a_limit_that_leaves_out_more_of_the_motion(rotations):
    settings = FitSettings(margin=0.0, percentile=60.0, comfort=95.0)
    limit = fit(rotations, settings)
    assert comfort_region(rotations, limit, settings) == limit


@pytest.mark.parametrize(
    "limit",
    [
        SwingTwist(Cone(1.5), (-1.0, 1.0)),
        SwingTwist(SHOULDER.swing, None),
        SwingTwist(None, (-1.0, 1.0)),
    ],
)
def test_a_limit_that_no_fit_gives_has_no_comfort_region(limit):
    assert comfort_region(drawn(SHOULDER), limit) is None


@pytest.mark.parametrize("comfort", [-1.0, 20.0, 120.0, math.nan])
def test_a_comfort_that_is_no_middle_is_refused(comfort):
    with pytest.raises(InvalidInput, match="comfort"):
        FitSettings(comfort=comfort)
