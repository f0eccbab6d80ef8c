"""Dragging: a pointer's ray meets a dial where the eye sees it, and values follow it past half turns."""

from __future__ import annotations

import math
import random

import pytest
from mathutils import Quaternion, Vector
from seeds import few_of

from ccd_rig.limits.outlines import Dial, Drag, angle_on

PI = math.pi


def random_dial(rng: random.Random) -> Dial:
    turn = Quaternion([rng.gauss(0, 1) for _ in range(4)]).normalized()
    centre = Vector([rng.uniform(-1, 1) for _ in range(3)])
    axis, zero = turn @ Vector((0, 0, 1)), turn @ Vector((1, 0, 0))
    return Dial("HINGE", centre, axis, zero, rng.uniform(0.2, 2.0), -1.0, 1.0, 0.0)


@pytest.mark.parametrize("seed", few_of(range(40), 10))
def test_a_ray_through_a_point_of_the_arc_has_its_angle(seed):
    rng = random.Random(seed)
    dial, angle = random_dial(rng), rng.uniform(-PI, PI)
    point = dial.point(angle)
    while True:
        eye = point + Vector([rng.uniform(-5, 5) for _ in range(3)])
        if abs((point - eye).normalized().dot(dial.axis)) > 0.2:
            break
    seen = angle_on(dial, eye, (point - eye) * rng.uniform(0.1, 10.0), 0.0)
    assert math.remainder(seen - angle, 2.0 * PI) == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("seed", few_of(range(40), 10))
def test_edge_on_the_point_near_the_one_before_counts(seed):
    rng = random.Random(seed)
    dial = random_dial(rng)
    view = rng.uniform(-PI, PI)
    direction = (dial.point(view) - dial.centre).normalized()  # in the dial's plane, from behind it
    for offset in (-2.8, -2.0, -1.2, -0.4, 0.4, 1.2, 2.0, 2.8):
        angle = view + offset
        origin = dial.point(angle) - direction * 10.0
        seen = angle_on(dial, origin, direction, angle + rng.uniform(-0.1, 0.1))
        assert math.remainder(seen - angle, 2.0 * PI) == pytest.approx(0.0, abs=1e-3)


def test_edge_on_past_the_arc_its_end_counts():
    dial = Dial("HINGE", Vector(), Vector((0, 0, 1)), Vector((1, 0, 0)), 1.0, 0.0, 1.0, 0.0)
    assert angle_on(dial, Vector((5.0, 3.0, 0.0)), Vector((-1.0, 0.0, 0.0)), 1.0) == pytest.approx(PI / 2)
    assert angle_on(dial, Vector((5.0, -3.0, 0.0)), Vector((-1.0, 0.0, 0.0)), -1.0) == pytest.approx(-PI / 2)


def test_through_the_centre_there_is_no_angle():
    dial = Dial("HINGE", Vector(), Vector((0, 0, 1)), Vector((1, 0, 0)), 1.0, 0.0, 1.0, 0.0)
    assert angle_on(dial, Vector((0.0, 0.0, 3.0)), Vector((0.0, 0.0, -1.0)), 0.0) is None


def test_a_drag_goes_on_past_half_turns():
    drag = Drag(0.5, 3.0)
    for i in range(1, 101):
        drag.follow(math.remainder(3.0 + 0.1 * i, 2.0 * PI), is_precise=False)
    assert drag.value == pytest.approx(10.5)
    for i in range(99, -1, -1):
        drag.follow(math.remainder(3.0 + 0.1 * i, 2.0 * PI), is_precise=False)
    assert drag.value == pytest.approx(0.5)


def test_a_drag_is_ten_times_finer_when_precise():
    drag = Drag(1.0, 0.0)
    drag.follow(0.5, is_precise=True)
    assert drag.value == pytest.approx(1.05)
    drag.follow(0.7, is_precise=False)
    assert drag.value == pytest.approx(1.25)


def test_bounds_come_after_steps():
    drag = Drag(math.radians(43.0), 0.0)
    step = math.radians(5.0)
    assert drag.bounded(-PI, PI, step) == pytest.approx(math.radians(45.0))
    assert drag.bounded(-PI, math.radians(44.0), step) == pytest.approx(math.radians(44.0))
    assert drag.bounded(-PI, PI) == pytest.approx(math.radians(43.0))
    # Past a bound nothing is lost: the value comes back where the pointer does.
    drag.follow(2.0, is_precise=False)
    assert drag.bounded(-1.0, 1.0) == 1.0
    drag.follow(0.0, is_precise=False)
    assert drag.bounded(-1.0, 1.0) == pytest.approx(math.radians(43.0))
