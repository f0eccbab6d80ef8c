"""Quaternions: group laws, tiny and half-turn angles, opposite and zero vectors."""

from __future__ import annotations

import math
import random

import pytest
from chains import EXACT, FLOAT32
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Quaternion, Vector

from ccd_rig.maths.rotations import (
    NOISE,
    angle_between,
    angle_of,
    between,
    exp,
    log,
    perpendicular,
    power,
    swing_twist,
)

IDENTITY = Quaternion((1.0, 0.0, 0.0, 0.0))
X, Y, Z = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0))
DIAGONAL = Vector((1.0, -2.0, 0.5)).normalized()

component = st.floats(-1.0, 1.0, width=32)


def _from_components(parts: tuple[float, float, float, float]) -> Quaternion:
    return Quaternion(parts).normalized()


rotations = (
    st.tuples(component, component, component, component)
    .filter(lambda parts: math.hypot(*parts) > 1e-3)
    .map(_from_components)
)
vectors = (
    st.tuples(component, component, component).filter(lambda parts: math.hypot(*parts) > 1e-3).map(Vector)
)


def off(a: Quaternion, b: Quaternion) -> float:
    """Largest difference of a component: the sign counts."""
    return max(abs(p - q) for p, q in zip(a, b, strict=True))


def turn(axis: Vector, angle: float) -> Quaternion:
    return exp(axis * angle)


# --- between


@given(vectors, vectors, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_between_takes_a_to_b_by_the_smallest_rotation(a, b, scale_a, scale_b):
    rotation = between(a * scale_a, b * scale_b)
    assert (rotation @ a.normalized() - b.normalized()).length < FLOAT32
    assert rotation.w >= 0.0
    assert abs(rotation.magnitude - 1.0) < EXACT
    assert angle_of(rotation) == pytest.approx(a.angle(b), abs=2e-3)  # Vector.angle is single precision
    if angle_of(rotation) < math.pi - 1e-3:
        assert off(between(b * scale_b, a * scale_a), rotation.conjugated()) < EXACT


@pytest.mark.parametrize("angle", [1e-7, 1e-5, 1e-3, 0.1, 1.0, 3.0, math.pi - 1e-3, math.pi - 1e-5])
def test_between_keeps_tiny_and_nearly_opposite_angles(angle):
    # The target is the rounded vector: its own angle from +Y is what must come out.
    target = Vector((math.sin(angle), math.cos(angle), 0.0))
    expected = math.atan2(target.x, target.y)
    assert angle_of(between(Y, target)) == pytest.approx(expected, rel=1e-6)


@given(vectors, st.floats(1e-3, 1e3))
def test_between_opposite_vectors_is_the_half_turn_about_a_fixed_perpendicular(a, scale):
    rotation = between(a, -a)
    assert rotation.w == 0.0
    assert (rotation @ a + a).length < FLOAT32 * a.length
    assert abs(Vector(rotation[1:]).dot(a)) < EXACT
    assert (
        off(between(a, -a * scale), rotation) < 1e-3
    )  # the scaled vector is rounded, which may show as an angle
    assert tuple(between(a, -a)) == tuple(rotation)


def test_between_opposite_of_the_bone_axis_turns_about_x():
    assert tuple(between(Y, -Y)) == (0.0, 1.0, 0.0, 0.0)
    assert tuple(between(-Y, Y)) == (0.0, -1.0, 0.0, 0.0)


def test_between_within_noise_of_opposite_is_the_same_half_turn():
    for x, z in ((0.3, 0.0), (-0.3, 0.0), (0.0, 0.3), (0.2, -0.2)):
        assert tuple(between(Y, Vector((x * NOISE, -1.0, z * NOISE)))) == (0.0, 1.0, 0.0, 0.0)


def test_between_with_a_zero_vector_is_identity():
    zero = Vector((0.0, 0.0, 0.0))
    for a, b in ((zero, Y), (Y, zero), (zero, zero)):
        assert tuple(between(a, b)) == (1.0, 0.0, 0.0, 0.0)


def test_between_of_equal_vectors_is_identity_to_the_bit():
    rng = random.Random(3)
    for _ in range(200):
        a = Vector([rng.gauss(0.0, 1.0) for _ in range(3)])
        assert tuple(between(a, a)) == (1.0, 0.0, 0.0, 0.0)


def test_between_neither_overflows_nor_vanishes():
    for size in (1e-30, 1e-20, 1e20, 1e30):
        rotation = between(Vector((size, 0.0, 0.0)), Vector((0.0, size, 0.0)))
        assert off(rotation, turn(Z, math.pi / 2)) < EXACT


@given(vectors)
def test_perpendicular_is_a_unit_vector_at_right_angles(vector):
    found = perpendicular(vector)
    assert abs(found.length - 1.0) < EXACT
    assert abs(found.dot(vector)) < EXACT * vector.length


@pytest.mark.parametrize("axis", [X, Y, Z, -X, -Y, -Z])
def test_perpendicular_of_a_frame_axis_is_a_frame_axis(axis):
    assert sorted(map(abs, perpendicular(axis))) == [0.0, 0.0, 1.0]
    assert perpendicular(axis).dot(axis) == 0.0


@given(vectors)
def test_perpendicular_is_mirrored_as_axes_of_rotation_are(vector):
    """A turn by +90 degrees about it mirrors the end of a mirrored vector: it goes up, or back if upright."""
    x, y, z = turn(perpendicular(vector), math.pi / 2) @ vector
    mirrored = Vector((-vector.x, vector.y, vector.z))
    end = turn(perpendicular(mirrored), math.pi / 2) @ mirrored
    assert (end - Vector((-x, y, z))).length < EXACT * vector.length
    assert (y if abs(vector.z) > math.hypot(vector.x, vector.y) else z) > 0.0


def test_perpendicular_of_zero_is_x():
    assert perpendicular(Vector((0.0, 0.0, 0.0))) == X


# --- swing and twist


@given(rotations, vectors)
def test_swing_twist_multiply_to_the_rotation_and_keep_to_their_axes(rotation, axis):
    swing, twist = swing_twist(rotation, axis)
    n = axis.normalized()
    assert off(swing @ twist, rotation) < EXACT
    assert (Vector(twist[1:]) - n * Vector(twist[1:]).dot(n)).length < EXACT
    if math.hypot(rotation.w, Vector(rotation[1:]).dot(n)) > 1e-3:
        assert abs(Vector(swing[1:]).dot(n)) < EXACT
        assert swing.w >= 0.0


@given(st.floats(0.0, 3.1), st.floats(-3.1, 3.1), st.floats(-3.1, 3.1))
def test_swing_twist_finds_what_was_put_together(angle, azimuth, twist_angle):
    for axis in (Y, DIAGONAL):
        side = perpendicular(axis)
        direction = turn(axis, azimuth) @ side
        swing, twist = swing_twist(turn(direction, angle) @ turn(axis, twist_angle), axis)
        # The twist is blurred near the half-turn swing, where it is not determined.
        blur = 4.0 * EXACT / math.cos(0.5 * angle)
        assert angle_between(twist, turn(axis, twist_angle)) < blur
        assert angle_between(swing, turn(direction, angle)) < blur


def test_kenwrights_equation_4_with_its_signs_set_right():
    w, x, y, z = rotation = Quaternion((0.4, -0.5, 0.7, 0.3)).normalized()
    s = math.hypot(w, z)
    swing, twist = swing_twist(rotation, Z)
    assert off(twist, Quaternion((w / s, 0.0, 0.0, z / s))) < EXACT
    assert off(swing, Quaternion((s, (w * x - y * z) / s, (w * y + x * z) / s, 0.0))) < EXACT


@pytest.mark.parametrize("axis", [X, Y, Z, DIAGONAL])
def test_a_half_turn_swing_has_no_twist(axis):
    rotation = Quaternion((0.0, *perpendicular(axis)))
    for one in (rotation, -rotation):
        swing, twist = swing_twist(one, axis)
        assert tuple(twist) == (1.0, 0.0, 0.0, 0.0)
        assert tuple(swing) == tuple(one)
        assert swing is not one


# --- exp, log, power


@given(rotations)
def test_exp_undoes_log(rotation):
    vector = log(rotation)
    assert vector.length <= math.pi + EXACT
    assert angle_between(exp(vector), rotation) < EXACT
    assert (log(-rotation) - vector).length == 0.0


@given(vectors, st.floats(1e-6, math.pi - 1e-4))
def test_log_undoes_exp(axis, angle):
    vector = axis.normalized() * angle
    assert (log(exp(vector)) - vector).length < FLOAT32 * max(angle, 1e-3) or angle > 3.0
    assert angle_of(exp(vector)) == pytest.approx(angle, abs=EXACT)


@pytest.mark.parametrize("angle", [0.0, 1e-30, 1e-12, 1e-8, 9.9e-5, 1.01e-4, 1e-3])
def test_exp_and_log_are_exact_for_tiny_angles(angle):
    vector = Vector((0.0, angle, 0.0))
    assert log(exp(vector)).y == pytest.approx(vector.y, rel=3e-7)
    assert angle_of(exp(vector)) == pytest.approx(vector.y, rel=3e-7)


def test_exp_takes_more_than_a_turn():
    assert angle_between(exp(X * (4 * math.pi + 0.3)), exp(X * 0.3)) < EXACT


def test_log_of_a_half_turn_is_the_same_for_both_sides():
    for axis in (X, Y, Z, DIAGONAL, -DIAGONAL):
        half_turn = Quaternion((0.0, *axis))
        vector = log(half_turn)
        assert vector == log(-half_turn)
        assert next(part for part in vector if part != 0.0) > 0.0
        assert vector.length == pytest.approx(math.pi, abs=EXACT)
        assert tuple(power(half_turn, 0.5)) == tuple(power(-half_turn, 0.5))


@given(rotations, st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
def test_powers_of_one_rotation_add_up(rotation, first, second):
    product = power(rotation, first) @ power(rotation, second)
    assert angle_between(product, power(rotation, first + second)) < FLOAT32
    assert tuple(power(rotation, 0.0)) == (1.0, 0.0, 0.0, 0.0)
    assert angle_between(power(rotation, 1.0), rotation) < EXACT
    assert tuple(power(-rotation, first)) == tuple(power(rotation, first))


def test_power_above_one_turns_further():
    assert off(power(turn(X, 0.4), 2.5), turn(X, 1.0)) < EXACT
    assert off(power(turn(X, 0.4), -1.0), turn(X, -0.4)) < EXACT


# --- angle


@given(rotations)
def test_angle_of_is_the_same_for_both_sides_and_any_length(rotation):
    angle = angle_of(rotation)
    assert 0.0 <= angle <= math.pi
    assert angle_of(-rotation) == angle
    assert angle_of(rotation * 3.0) == pytest.approx(angle, abs=EXACT)


@given(rotations, rotations)
def test_angle_between_is_symmetric_and_free_of_signs(a, b):
    angle = angle_between(a, b)
    assert angle_between(b, a) == pytest.approx(angle, abs=1e-12)
    assert angle_between(-a, b) == pytest.approx(angle, abs=1e-12)
    assert angle == pytest.approx(angle_of(a.conjugated() @ b), abs=FLOAT32)
    assert angle_between(a, a) < 1e-12


def test_degenerate_quaternions_give_finite_results():
    zero = Quaternion((0.0, 0.0, 0.0, 0.0))
    assert tuple(log(zero)) == (0.0, 0.0, 0.0)
    assert tuple(power(zero, 0.5)) == (1.0, 0.0, 0.0, 0.0)
    assert angle_of(zero) == 0.0
    swing, twist = swing_twist(zero, Y)
    assert tuple(twist) == (1.0, 0.0, 0.0, 0.0)
    assert tuple(swing) == (0.0, 0.0, 0.0, 0.0)
