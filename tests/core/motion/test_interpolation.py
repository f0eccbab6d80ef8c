"""Frames that are solved, and slerp between them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Quaternion

from ccd_rig.errors import InvalidInput
from ccd_rig.maths.batch import slerp
from ccd_rig.motion.interpolation import (
    bell_means,
    least_lift,
    same_side,
    second_differences,
    slerp_rotations,
    solve_frames,
    straight_on,
)

EXACT = 1e-12
FLOAT32 = 2e-6


def random_rotations(seed, *shape):
    values = np.random.default_rng(seed).normal(size=(*shape, 4))
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def about(axis, angle):
    """Unit quaternion of a turn by `angle` radians about a unit axis."""
    return np.array([math.cos(angle / 2), *(math.sin(angle / 2) * np.asarray(axis, float))])


def _product(a, b):
    """Hamilton product, written from its definition by scalar and vector parts."""
    v = a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.array([a[0] * b[0] - np.dot(a[1:], b[1:]), *v])


def apart(a, b):
    """Difference of rotations: min(|a - b|, |a + b|)."""
    return np.minimum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)).max()


# --- solve_frames -------------------------------------------------------------------------------------------


@given(st.integers(-500, 500), st.integers(0, 300), st.integers(1, 400))
def test_frames_start_and_end_in_the_range_and_keep_the_step(start, count, step):
    frames = solve_frames(start, start + count, step)
    assert (frames[0], frames[-1]) == (start, start + count)
    gaps = [b - a for a, b in itertools.pairwise(frames)]
    assert all(gap == step for gap in gaps[:-1])
    assert all(0 < gap <= step for gap in gaps)


def test_last_frame_is_always_solved():
    assert solve_frames(1, 10, 4) == [1, 5, 9, 10]
    assert solve_frames(1, 9, 4) == [1, 5, 9]


def test_negative_frames_and_a_single_frame():
    assert solve_frames(-10, -3, 3) == [-10, -7, -4, -3]
    assert solve_frames(7, 7, 5) == [7]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((5, 4, 1), "empty"),
        ((1, 5, 0), "step"),
        ((1, 5, -2), "step"),
        ((1.5, 5, 1), "frame_start"),
        ((1, 5, True), "step"),
    ],
)
def test_frames_that_make_no_sense_are_refused(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        solve_frames(*arguments)


# --- slerp --------------------------------------------------------------------------------------------------


def test_slerp_turns_at_constant_speed_about_the_same_axis():
    axis = np.array([2.0, -1.0, 0.5]) / np.linalg.norm([2.0, -1.0, 0.5])
    start = about((0, 0, 1), 0.4)
    whole = 2.9
    frames, wanted = [10, 20], np.arange(10, 21)
    end = _product(about(axis, whole), start)
    expected = np.array([_product(about(axis, whole * i / 10), start) for i in range(11)])
    assert apart(slerp_rotations(frames, np.array([start, end])[:, None], wanted)[:, 0], expected) < EXACT


def test_slerp_takes_the_shorter_way_for_opposite_signs():
    a, b = about((1, 0, 0), 0.2), about((1, 0, 0), 0.6)
    between = slerp_rotations([0, 4], np.array([a, -b])[:, None], [0, 1, 2, 3, 4])[:, 0]
    assert np.abs(between - np.array([about((1, 0, 0), 0.2 + 0.1 * i) for i in range(5)])).max() < EXACT


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 1e-8, 1e-5])
def test_slerp_of_nearly_equal_rotations(angle, sign):
    a, b = about((0, 1, 0), 0.3), sign * about((0, 1, 0), 0.3 + angle)
    middle = slerp(a, b, np.asarray(0.25), axis=-1)
    assert np.abs(middle - about((0, 1, 0), 0.3 + 0.25 * angle)).max() < EXACT
    # The small turn itself is kept, not rounded away.
    sine = np.linalg.norm(_product(middle, a * [1, -1, -1, -1])[1:])
    assert abs(sine - angle / 8) < 1e-3 * angle + 1e-16


def test_slerp_of_a_half_turn_goes_one_way_in_equal_parts():
    # At a right angle on the sphere both ways are as long.
    a, b = about((1, 0, 0), 0.0), about((1, 0, 0), math.pi)
    path = slerp_rotations([0, 6], np.array([a, b])[:, None], range(7))[:, 0]
    dots = np.sum(path[1:] * path[:-1], axis=-1)
    assert np.abs(dots - math.cos(math.pi / 12)).max() < EXACT


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
def test_signs_are_continuous_and_solved_frames_exact(seed, count, joints):
    random = np.random.default_rng(seed)
    frames = np.cumsum(random.integers(1, 9, size=count)) - 20
    keys = random_rotations(seed, count, joints) * (1.0 + 1e-7 * random.normal(size=(count, joints, 1)))
    wanted = np.arange(frames[0], frames[-1] + 1)
    result = slerp_rotations(frames, keys, wanted)
    assert result.shape == (len(wanted), joints, 4)
    assert np.array_equal(result[0], keys[0])  # the first keeps its sign
    solved = result[frames - frames[0]]
    assert apart(solved, keys) == 0.0
    assert (np.sum(result[1:] * result[:-1], axis=-1) >= 0.0).all()
    assert np.abs(np.linalg.norm(result, axis=-1) - 1.0).max() < 1e-6
    for a, b, (i, j) in zip(solved, solved[1:], itertools.pairwise(frames - frames[0]), strict=False):
        for k in range(i + 1, j):
            assert np.abs(result[k] - slerp(a, b, np.asarray((k - i) / (j - i)), axis=-1)).max() < 1e-6


def test_slerp_agrees_with_mathutils():
    keys = same_side(random_rotations(3, 9, 4))
    result = slerp_rotations(range(0, 90, 10), keys, range(81))
    for frame, joint in itertools.product(range(81), range(4)):
        i = min(frame // 10, 7)
        expected = Quaternion(keys[i, joint]).slerp(Quaternion(keys[i + 1, joint]), frame / 10 - i)
        assert apart(result[frame, joint], np.array(expected)) < FLOAT32


def test_one_solved_frame_and_any_order_of_wanted():
    keys = random_rotations(1, 1, 2)
    assert np.array_equal(slerp_rotations([7], keys, [7, 7]), np.repeat(keys, 2, axis=0))
    keys = random_rotations(2, 3, 2)
    there = slerp_rotations([0, 5, 8], keys, [0, 2.5, 7])
    back = slerp_rotations([0, 5, 8], keys, [7, 0, 2.5])
    assert np.array_equal(there[[2, 0, 1]], back)


def test_input_is_not_changed():
    keys = random_rotations(5, 6, 3)
    kept = keys.copy()
    slerp_rotations(range(6), keys, [0.5, 3.5])
    assert np.array_equal(keys, kept)


def test_the_least_lift_is_smooth_and_nowhere_below_what_is_needed():
    """No curve through the same points bends less: its forces only push, and only where it is held up."""
    times = np.arange(40.0)
    needed = np.full(40, -1.0)
    needed[[12, 13, 25]] = 0.04, 0.05, 0.03
    fixed = np.isin(np.arange(40), (4, 5, 34, 35))
    lift = least_lift(times, needed, fixed, 8.0)
    assert (lift >= needed).all() and (lift >= 0.0).all() and not lift[fixed].any()
    np.testing.assert_allclose(lift[[13, 25]], needed[[13, 25]], atol=1e-9)
    bends = second_differences(times)
    forces = lift + 4.0**4 * bends.T @ (bends @ lift)
    free = ~fixed & (lift > 1e-6) & (lift > needed + 1e-6)
    assert free.sum() > 15
    np.testing.assert_allclose(forces[free], 0.0, atol=1e-6)
    assert (forces[~fixed] > -1e-6).all()
    assert np.abs(np.diff(lift, 3)).max() < 0.01


def test_no_lift_where_nothing_is_needed_or_may_be():
    times = np.arange(12.0)
    np.testing.assert_array_equal(least_lift(times, np.full(12, -0.1), times < 3, 8.0), np.zeros(12))
    np.testing.assert_array_equal(least_lift(times, np.full(12, 0.1), times > -1, 8.0), np.zeros(12))


def test_swings_between_planted_frames_are_lifted_by_themselves():
    times = np.arange(6000.0)
    fixed = times % 30 < 8
    needed = np.where(times % 30 < 19, 0.02, 0.05) * (1.0 + np.sin(times))
    lift = least_lift(times, needed, fixed, 8.0)  # dense in all frames this takes seconds
    assert (lift >= np.where(fixed, 0.0, needed)).all() and not lift[fixed].any()
    for first in (0, 2970):
        part = slice(first, first + 60)
        np.testing.assert_allclose(
            least_lift(times[part], needed[part], fixed[part], 8.0)[:38], lift[part][:38], atol=1e-9
        )


def test_second_differences_are_exact_of_parabolas_at_uneven_times():
    times = np.array((0.0, 0.5, 2.0, 2.25, 5.0))
    np.testing.assert_allclose(second_differences(times) @ (3.0 * times**2 - times), 6.0, atol=1e-12)


def test_straight_lines_go_on_beyond_their_ends():
    at, places = np.array([-1.0, 0.5, 1.5, 3.0]), np.array([0.0, 1.0, 2.0])
    assert straight_on(at, places, np.array([0.0, 1.0, 3.0])).tolist() == [-1.0, 0.5, 2.0, 5.0]
    assert straight_on(at, places[:1], np.array([7.0])).tolist() == [7.0] * 4


def test_means_by_a_hann_window():
    """Of one neighbour to either side it is 1/4, 1/2, 1/4."""
    assert bell_means(np.array([0.0, 0.0, 4.0, 0.0, 0.0]), 1) == pytest.approx([1.0, 2.0, 1.0])
