"""What goals leave free from a frame to the next, of a bone whose turns are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.goals import OrientationGoal, PositionGoal
from ccd_rig.limits.shapes import Slide
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares import easing
from ccd_rig.solvers.least_squares.departures import departures
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.state import Bones, Poses, start_state

X, Y = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0))
POINT, TURN = PositionGoal("bone", (0.0, 1.0, 0.0)), OrientationGoal("bone", Quaternion())


def left_free(goals, turns, some, slid=()):
    """The largest free rotation after each of some frames, of a bone with these rotations from its base, and
    slid along Z by so much."""
    slides = (Slide((0.0, 0.0, 1.0), -1.0, 1.0),) if slid else ()
    skeleton = Skeleton([Joint("bone", -1, (0.0, 0.0, 0.0), Quaternion(), 1.0, slides=slides)])
    problem = LeastSquaresProblem(skeleton, goals, [None], [0])
    rest = Pose.rest(skeleton)
    places = [Vector((0.0, 0.0, along)) for along in slid or [0.0] * len(turns)]
    poses = Poses.of([Pose((turn,), (place,)) for turn, place in zip(turns, places, strict=True)])
    base = Poses.of([rest] * len(turns))
    given = problem.given(Bones.of(skeleton), poses, problem.own_targets(), base)
    state = start_state(problem.layout, given, poses)
    departed = departures(problem.layout, given, state)
    frames, found = SimpleNamespace(problem=problem, given=given), SimpleNamespace(state=state)
    return easing._left_free(frames, found, departed, np.array(some))


def test_a_swing_is_asked_for_by_a_point_and_a_twist_is_not():
    swing, twist = Quaternion(X, 0.3), Quaternion(Y, 0.5)
    turns = [Quaternion(), swing, swing @ twist, swing @ twist, twist]
    found = left_free([POINT], turns, [0, 1, 2])
    assert found == pytest.approx([0.0, 0.5, 0.0], abs=1e-6)
    assert left_free([POINT], turns, [1]) == pytest.approx([0.5], abs=1e-6)


def test_of_a_turn_about_both_the_twist_is_left():
    both = 0.2 * X + 0.4 * Y
    turn = Quaternion(both.normalized(), both.length)
    assert left_free([POINT], [Quaternion(), turn], [0]) == pytest.approx([0.4], abs=1e-6)


def test_nothing_is_left_where_the_whole_rotation_is_asked_for():
    turns = [Quaternion(), Quaternion(X, 0.3), Quaternion(X, 0.3) @ Quaternion(Y, 0.5)]
    assert left_free([TURN], turns, [0, 1]) == pytest.approx([0.0, 0.0], abs=1e-6)


def test_a_slide_that_stays_asks_for_no_rotation():
    """The point is moved by the slide as by a turn about X: where one moves the other could have."""
    turns = [Quaternion()] * 3
    assert left_free([POINT], turns, [0], slid=(0.4, 0.4, 0.1)) == pytest.approx([0.0], abs=1e-6)
    assert left_free([POINT], turns, [1], slid=(0.4, 0.4, 0.1))[0] > 0.05


def test_a_curve_goes_on_as_the_frames_before_and_after_it():
    """A hinge that departs evenly from its base, but for the frames between: they depart evenly then."""
    count, first, last = 12, 4, 8
    even = 0.1 * np.arange(count)
    angles = np.where((np.arange(count) > first) & (np.arange(count) < last), 5.0, even)
    balls = np.zeros((4, 1, count))
    balls[0] = 1.0
    frames = SimpleNamespace(fixed=np.zeros(count), together=np.ones(count - 1, bool), times=np.arange(12.0))
    for together in (np.ones(count - 1, bool), np.zeros(count - 1, bool)):
        frames.together = together
        found = easing._curved(frames, (balls, angles[None], np.zeros((0, count))), (first, last))
        np.testing.assert_allclose(found[1][0], even[first + 1 : last], atol=1e-12)
    bent = np.where(np.arange(count) == first - 1, even + 0.3, angles)
    frames.together = np.ones(count - 1, bool)
    found = easing._curved(frames, (balls, bent[None], np.zeros((0, count))), (first, last))
    assert found[1][0, 0] < even[first + 1] - 1e-3, "it goes on down from the frame before"
