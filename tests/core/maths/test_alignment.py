"""Best single moves near a reference: none that was tried is better."""

from __future__ import annotations

import math
import random

import pytest
from chains import random_rotation
from mathutils import Quaternion, Vector

from ccd_rig.maths.alignment import Pair, best_hinge_turn, best_rotation, best_rotation_near, best_slide
from ccd_rig.maths.rotations import angle_between, exp

AXES = (Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0)))
ROUNDING = 1e-5  # of single precision, relative to sums of some units


def vector(rng: random.Random, size: float = 1.0) -> Vector:
    return Vector([rng.gauss(0.0, size) for _ in range(3)])


def pairs_of(rng: random.Random, count: int) -> list[Pair]:
    return [(vector(rng), vector(rng), rng.uniform(0.1, 2.0)) for _ in range(count)]


def cost(rotation: Quaternion, pairs: list[Pair], reference: Quaternion, weight: float) -> float:
    missed = sum(w * ((rotation @ a) - b).length_squared for a, b, w in pairs)
    return missed + weight * sum((rotation @ axis - reference @ axis).length_squared for axis in AXES)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_no_rotation_near_the_best_one_is_better(count):
    rng = random.Random(count)
    for _ in range(300):
        pairs, reference = pairs_of(rng, count), random_rotation(rng)
        weight = 10.0 ** rng.uniform(-3.0, 1.0)
        best = best_rotation_near(pairs, reference, weight)
        least = cost(best, pairs, reference, weight)
        for _ in range(30):
            other = exp(vector(rng, 10.0 ** rng.uniform(-3.0, 0.0))) @ best
            assert cost(other, pairs, reference, weight) >= least - ROUNDING * (1.0 + least)


def test_a_light_reference_only_says_what_the_pairs_leave_open():
    rng = random.Random(5)
    for _ in range(50):
        ((a, b, w),), reference = pairs_of(rng, 1), random_rotation(rng)
        found = best_rotation_near([(a, b, w)], reference, 1e-7)
        assert (found @ a).angle(b) < 1e-3
        # The twist is the reference's: nothing that takes a to b is nearer to it.
        for turn in (-0.1, 0.1):
            other = Quaternion(b, turn) @ found
            assert angle_between(found, reference) <= angle_between(other, reference) + 1e-4
        several = pairs_of(rng, 3)
        assert angle_between(best_rotation_near(several, reference, 1e-7), best_rotation(several)) < 1e-3


def test_a_heavy_reference_and_one_without_pairs_are_followed():
    rng = random.Random(6)
    reference = random_rotation(rng)
    for pairs in ([], [(Vector(), vector(rng), 1.0)], pairs_of(rng, 1), pairs_of(rng, 2)):
        assert angle_between(best_rotation_near(pairs, reference, 1e6), reference) < 1e-3


def test_a_hinge_balances_its_pairs_and_its_reference():
    rng = random.Random(7)
    for _ in range(200):
        axis, pairs = vector(rng).normalized(), pairs_of(rng, rng.randrange(1, 4))
        wanted, weight = rng.uniform(-math.pi, math.pi), 10.0 ** rng.uniform(-2.0, 1.0)
        reference = Quaternion(axis, wanted)
        best = best_hinge_turn(axis, pairs, wanted, weight)
        least = cost(Quaternion(axis, best), pairs, reference, weight)
        for other in [best + d for d in (-0.3, -0.01, 0.01, 0.3, 2.0)]:
            assert cost(Quaternion(axis, other), pairs, reference, weight) >= least - ROUNDING * (1.0 + least)


@pytest.mark.parametrize("gain", [1.0, 0.5, -2.0])
def test_a_slide_that_moves_more_or_less_than_itself(gain):
    """The best shift of several that ask, against the smallest of many."""
    axis = Vector((0.6, 0.0, 0.8))
    shifts = [(Vector((1.0, 2.0, -0.5)), gain, 2.0), (Vector((-0.3, 0.1, 0.9)), 1.0, 0.7)]

    def cost(d):
        return sum(w * (g * d * axis - s).length_squared for s, g, w in shifts)

    found = best_slide(axis, shifts)
    assert all(cost(found) <= cost(found + step) + 1e-6 for step in (-0.1, -0.01, 0.01, 0.1))
    assert best_slide(axis, [(Vector((3.0, 0.0, 4.0)), gain, 1.0)]) == pytest.approx(5.0 / gain)
