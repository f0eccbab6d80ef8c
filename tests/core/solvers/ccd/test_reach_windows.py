"""How much of a step a reach window leaves, against where a circle and a line meet its sphere."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import pytest
from mathutils import Quaternion, Vector

from ccd_rig.solvers.ccd.reach_windows import HALVINGS, ReachWindow, Way, shortened, shortened_slide

Z = Vector((0.0, 0.0, 1.0))
STEP = 2.0**-HALVINGS  # so finely a step is cut
FLOAT32 = 1e-5


@dataclass
class Held:
    """What a window asks of an effector: where it is; turns of the joint take it along as a whole."""

    position: Vector

    def hangs_on(self, _joint: int) -> Vector:
        return self.position


def window(end, longest, top=0):
    return ReachWindow(Held(Vector(end)), top, (1, 2), (), longest)


def meets(way, axis, longest):
    """The shift at which way + shift * axis gets as long as `longest`, forwards."""
    along = way.dot(axis)
    return -along + math.sqrt(along**2 - way.length_squared + longest**2)


@pytest.mark.parametrize("seed", range(20))
def test_a_shift_ends_where_the_line_meets_the_sphere(seed):
    rng = random.Random(seed)
    root, end = (Vector([rng.uniform(-1, 1) for _ in range(3)]) for _ in range(2))
    axis = Vector([rng.gauss(0, 1) for _ in range(3)]).normalized()
    longest = (end - root).length * rng.uniform(1.05, 1.5)
    heads = [root, root, end]
    inside = meets(end - root, axis, longest)
    assert shortened_slide([window(end, longest)], heads, 2, axis, 0.9 * inside) == 0.9 * inside
    found = shortened_slide([window(end, longest)], heads, 2, axis, 3.0 * inside)
    assert found <= inside + FLOAT32
    assert found == pytest.approx(inside, abs=3.0 * inside * STEP + FLOAT32)


def test_the_narrower_of_two_windows_counts():
    heads, end = [Vector(), Vector(), Vector((0.0, 1.0, 0.0))], (0.0, 1.0, 0.0)
    axis, both = Vector((0.0, 1.0, 0.0)), [window(end, 1.75), window(end, 1.25)]
    for windows in (both, both[::-1]):
        assert shortened_slide(windows, heads, 2, axis, 1.0) == pytest.approx(0.25, abs=STEP)


def test_a_part_that_is_stretched_past_its_window_may_only_come_back():
    heads, end = [Vector(), Vector(), Vector((0.0, 2.0, 0.0))], (0.0, 2.0, 0.0)
    axis, windows = Vector((0.0, 1.0, 0.0)), [window(end, 1.0)]
    assert shortened_slide(windows, heads, 2, axis, 0.5) == 0.0
    assert shortened_slide(windows, heads, 2, axis, -0.5) == -0.5


def test_a_shift_of_the_windows_own_first_joint_stretches_nothing():
    heads, end = [Vector(), Vector(), Vector((0.0, 1.0, 0.0))], (0.0, 1.0, 0.0)
    for i in (0, 1):
        assert shortened_slide([window(end, 1.0, top=1)], heads, i, Vector((0.0, 1.0, 0.0)), 5.0) == 5.0


@pytest.mark.parametrize("seed", range(20))
def test_a_turn_ends_where_the_circle_meets_the_sphere(seed):
    """Two links of a and b: the end is `longest` away at an angle that the law of cosines tells."""
    rng = random.Random(seed)
    a, b = rng.uniform(0.5, 2.0), rng.uniform(0.5, 2.0)
    bent, least = rng.uniform(1.5, 2.5), rng.uniform(0.3, 1.0)  # angles off straight
    longest = math.sqrt(a * a + b * b + 2.0 * a * b * math.cos(least))
    heads = [Vector(), Vector((0.0, a, 0.0))]
    end = heads[1] + Quaternion(Z, bent) @ Vector((0.0, b, 0.0))
    windows = [window(end, longest)]

    def way(to):
        now = Quaternion(Z, bent)
        return Way(now, Quaternion(Z, to), lambda turned: turned @ now.conjugated(), lambda wanted: wanted)

    free = way(least + 0.05)
    assert shortened(windows, heads, 1, free) is free.wanted
    found = shortened(windows, heads, 1, way(0.0))
    assert 2.0 * math.asin(found.z) == pytest.approx(least, abs=bent * STEP + 1e-4)
