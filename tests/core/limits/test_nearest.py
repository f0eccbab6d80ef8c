"""The nearest allowed rotation, held against every rotation of a fine grid."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import EXACT
from mathutils import Quaternion, Vector
from random_limits import PI, Y, random_limit, turn
from seeds import few_and_all

from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, SwingTwist, sample, swing_axes, violation
from ccd_rig.maths.rotations import angle_between, exp


def grid_swing_twist(limit: SwingTwist | Hinge, count: int) -> np.ndarray:
    """(N, 4) allowed rotations, borders included, built as products of exponentials."""
    if isinstance(limit, Hinge):
        low, high = limit.lower, limit.upper
        radii = np.zeros(1)
    else:
        low, high = limit.twist or (-PI, PI)
        radius = limit.swing.radius if isinstance(limit.swing, Cone) else PI
        radii = np.linspace(0.0, radius, count)
    azimuths = np.linspace(-PI, PI, count if len(radii) > 1 else 1, endpoint=False)
    twists = np.linspace(low, high, 8 * count if len(radii) == 1 else count)
    if isinstance(getattr(limit, "swing", None), Ellipse):
        pairs = [
            (r * math.cos(f) * (e.x_upper if math.cos(f) >= 0 else -e.x_lower),
             r * math.sin(f) * (e.z_upper if math.sin(f) >= 0 else -e.z_lower))
            for e in (limit.swing,) for r in np.linspace(0, 1, count) for f in azimuths
        ]  # fmt: skip
    else:
        pairs = [(r * math.cos(f), r * math.sin(f)) for r in radii for f in azimuths]
    a, b = (np.array(one) for one in swing_axes(limit.axis))
    vectors = np.array([x * a + z * b for x, z in pairs])
    angles = np.linalg.norm(vectors, axis=1)
    swings = np.column_stack([np.cos(angles / 2), vectors * (np.sinc(angles / 2 / PI) / 2)[:, None]])
    turns = np.column_stack([np.cos(twists / 2), np.sin(twists / 2)[:, None] * np.array(limit.axis)])
    return products(swings, turns)


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Every left @ every right: (L, 4), (R, 4) -> (L * R, 4)."""
    p, q = left[:, None, :], right[None, :, :]
    w = p[..., 0] * q[..., 0] - (p[..., 1:] * q[..., 1:]).sum(-1)
    v = p[..., :1] * q[..., 1:] + q[..., :1] * p[..., 1:] + np.cross(p[..., 1:], q[..., 1:])
    return np.concatenate([w[..., None], v], axis=-1).reshape(-1, 4)


def grid_box(limit: EulerBox, count: int) -> np.ndarray:
    turns = {}
    for i, letter in enumerate("XYZ"):
        angles = np.linspace(limit.lower[i], limit.upper[i], count)
        turns[letter] = np.column_stack([np.cos(angles / 2), np.sin(angles / 2)[:, None] * np.eye(3)[i]])
    first, second, third = limit.order
    return products(turns[third], products(turns[second], turns[first]))


@pytest.mark.parametrize(("kind", "count"), [("hinge", 400), ("cone", 30), ("twist", 30), ("box", 30)])
@pytest.mark.parametrize("seeds", few_and_all(10, 100))
def test_nothing_allowed_is_nearer(kind: str, count: int, seeds: range):
    for seed in seeds:
        rng = random.Random(f"4242 {seed}")
        limit = random_limit(kind, rng)
        allowed = grid_box(limit, count) if kind == "box" else grid_swing_twist(limit, count)
        for _ in range(8):
            rotation = sample(None, rng)
            nearest = Quaternion(allowed[np.argmax(np.abs(allowed @ np.array(rotation)))])
            assert violation(limit, rotation) <= angle_between(rotation, nearest) + EXACT, (limit, rotation)


@pytest.mark.parametrize(("most_swing", "most_excess"), [(30, 0.3), (60, 3.0), (100, 12.0)])
@pytest.mark.parametrize("seeds", few_and_all(10, 60))
def test_an_ellipse_is_within_a_few_degrees_of_the_nearest(
    most_swing: float, most_excess: float, seeds: range
):
    """Nearest in the plane of the rotation vector, not on the sphere: what that costs, in degrees."""
    excess = []
    for seed in seeds:
        rng = random.Random(f"99 {seed}")
        sides = [rng.uniform(0.1, 1.2) for _ in range(4)]
        limit = SwingTwist(Ellipse(-sides[0], sides[1], -sides[2], sides[3]), (-0.5, 0.7))
        allowed = grid_swing_twist(limit, 30)
        for _ in range(8):
            azimuth = rng.uniform(-PI, PI)
            swing = exp(
                Vector((math.cos(azimuth), 0.0, math.sin(azimuth)))
                * math.radians(rng.uniform(0.0, most_swing))
            )
            rotation = swing @ turn(Y, rng.uniform(-1.0, 1.2))
            nearest = Quaternion(allowed[np.argmax(np.abs(allowed @ np.array(rotation)))])
            excess.append(violation(limit, rotation) - angle_between(rotation, nearest))
    assert max(excess) < math.radians(most_excess)
    assert float(np.median(excess)) < EXACT
