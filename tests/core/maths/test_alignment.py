"""The best turn of a hinge near a reference: none that was tried is better."""

from __future__ import annotations

import math
import random

from mathutils import Quaternion, Vector

from ccd_rig.maths.alignment import Pair, best_hinge_turn

AXES = (Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0)))
ROUNDING = 1e-5  # of single precision, relative to sums of some units


def vector(rng: random.Random, size: float = 1.0) -> Vector:
    return Vector([rng.gauss(0.0, size) for _ in range(3)])


def pairs_of(rng: random.Random, count: int) -> list[Pair]:
    return [(vector(rng), vector(rng), rng.uniform(0.1, 2.0)) for _ in range(count)]


def cost(rotation: Quaternion, pairs: list[Pair], reference: Quaternion, weight: float) -> float:
    missed = sum(w * ((rotation @ a) - b).length_squared for a, b, w in pairs)
    return missed + weight * sum((rotation @ axis - reference @ axis).length_squared for axis in AXES)


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
