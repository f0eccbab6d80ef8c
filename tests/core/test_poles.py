"""Poles near straight: to which side a chain bends, that it does not spin, nor the bones between roll."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from chains import straight
from mathutils import Quaternion, Vector
from seeds import few_of

from ccd_rig.goals import (
    PoleGoal,
    PositionGoal,
)
from ccd_rig.kernel.goals import BEND_RANGE, IN_LINE, OFF_LINE
from ccd_rig.limits.shapes import Hinge, ReversedLimit
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import Solver, SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import Transform, chain_bend, forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve

X, Y, Z = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0))
FRAMES = 60
KNEE = Hinge((1.0, 0.0, 0.0), 0.0, 2.5)


def leg(count: int, rest_bend: float = 0.0, knee: Hinge | None = None) -> Skeleton:
    """Bones of length 2 altogether along +Y, each at rest bent by so many radians about X."""
    length = 2.0 / count
    return Skeleton(
        Joint(
            f"joint{i}",
            i - 1,
            (0.0, length if i else 0.0, 0.0),
            Quaternion(X, rest_bend if i else 0.0),
            length,
            knee if i == 1 else None,
        )
        for i in range(count)
    )


def pole_error(skeleton: Skeleton, pose: Pose, target: Vector) -> float:
    """How far the bend of a whole chain is off its pole, radians."""
    goal = PoleGoal("joint0", skeleton.joints[-1].name, target)
    return measure(goal, skeleton, forward_kinematics(skeleton, pose)).angle


# --- the axis of a chain ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "rest_bend", "side"),
    [
        (Hinge((1, 0, 0), 0.0, 2.5), 0.0, -1),  # a positive turn about X takes the shin to +Z, the knee to -Z
        (Hinge((1, 0, 0), -2.5, 0.2), 0.0, 1),
        (Hinge((-1, 0, 0), -2.5, 0.2), 0.0, -1),
        (ReversedLimit(Hinge((1, 0, 0), 0.0, 2.5), (1.0, 0.0, 0.0, 0.0)), 0.0, 1),
        (Hinge((1, 0, 0), -1.0, 0.5), 1.0, -1),  # straight is at -1: all that is allowed bends on
        (Hinge((1, 0, 0), -1.0, 2.1), 0.0, -1),  # more than twice as far to one side
        (Hinge((1, 0, 0), -1.0, 1.9), 0.0, 0),
        (Hinge((1, 0, 0), -0.5, 0.5), 0.2, -1),  # no side of its own: the rest bend's
        (Hinge((0, 1, 0), 0.0, 2.5), 0.2, -1),  # twists, does not bend
        (None, 0.2, -1),
        (None, -0.2, 1),
        (None, 0.0, 0),
        (Hinge((1, 0, 0), -1.0, 1.0), 0.0, 0),
    ],
)
def test_the_side_to_which_a_straight_chain_bends(limit, rest_bend, side):
    skeleton = leg(2, rest_bend).replace({"joint1": {"limit": limit}})
    own = PoleGoal("joint0", "joint1", (0.0, 0.0, 5.0)).bend_axis(skeleton)
    assert own.scale == pytest.approx(2.0)
    straightened = Pose.rest(skeleton).with_rotations({1: Quaternion(X, -rest_bend)})
    axis = forward_kinematics(skeleton, straightened)[own.joint].rotation @ own.axis
    assert (Y.cross(axis) - Vector((0.0, 0.0, side))).length < 1e-4
    errors = [pole_error(skeleton, straightened, Vector((0.0, 0.0, z))) for z in (5.0, -5.0)]
    expected = {-1: (math.pi, 0.0), 0: (0.0, 0.0), 1: (0.0, math.pi)}[side]
    assert errors == pytest.approx(expected, abs=1e-3)


def test_the_hinge_that_bends_the_chain_farthest_tells():
    """An ankle does not speak for a knee, nor does a locked joint. What is above a hinge carries its axis."""
    skeleton = leg(3).replace({"joint1": {"limit": KNEE}, "joint2": {"limit": Hinge((1, 0, 0), -1.0, 0.2)}})
    goal = PoleGoal("joint0", "joint2", (0.0, 0.0, 5.0))
    assert goal.bend_axis(skeleton).joint == 0
    locked = skeleton.replace({"joint1": {"stiffness": 1.0}})
    assert goal.bend_axis(locked).joint == 1
    apart = skeleton.replace({"joint1": {"inherit_rotation": False}})
    assert goal.bend_axis(apart).joint == 1


# --- the fade -----------------------------------------------------------------------------------------------


def knee_at(bend: float, across: float = 0.0) -> tuple[list[Vector], Vector]:
    """Heads and end of a chain of length about 2 whose knee is off the line, in parts of the length."""
    return [Vector(), Vector((2.0 * across, 1.0, 2.0 * bend))], Vector((0.0, 2.0, 0.0))


def knee_error(heads: list[Vector], end: Vector, pole: Vector, axis: Vector | None = None) -> float:
    """How far two bones bend off their pole, radians; straight they bend about `axis`, or not at all."""
    shin = end - heads[1]
    skeleton = leg(2, knee=None if axis is None else KNEE).replace({"joint1": {"length": shin.length}})
    turn = Quaternion() if axis is None else X.rotation_difference(axis)  # the first joint's X is the axis
    transforms = (Transform(heads[0], turn), Transform(heads[1], Y.rotation_difference(shin)))
    return measure(PoleGoal("joint0", "joint1", pole), skeleton, transforms).angle


def test_a_clear_bend_counts_alone():
    heads, end = knee_at(BEND_RANGE * 1.01)
    for axis in (None, X, -X, Vector((0.0, 0.0, 1.0))):
        bend = chain_bend(heads, end, axis or Vector(), 2.0)
        assert (bend - Vector((0.0, 0.0, heads[1].z))).length < 1e-6
        error = knee_error(heads, end, Vector((3.0, 1.0, 0.0)), axis)
        assert error == pytest.approx(0.5 * math.pi, abs=1e-6)


def test_a_chain_without_a_line_has_no_bend():
    heads, _ = knee_at(0.3)
    assert chain_bend(heads, heads[0], X, 2.0).length == 0.0
    assert chain_bend(heads, Vector((0.0, 2.0, 0.0)), X, 0.0).length == 0.0


def test_without_an_axis_a_goal_asks_for_less_and_less():
    errors = []
    for part in range(60, -1, -1):
        heads, end = knee_at(0.001 * part)
        errors.append(knee_error(heads, end, Vector((3.0, 1.0, 0.0))))
    assert errors[-1] == 0.0
    assert errors[9] == pytest.approx(0.5 * math.pi, abs=1e-6)
    steps = [a - b for a, b in pairwise(errors)]
    assert min(steps) > -1e-6
    # Smooth: no step is much longer than its neighbours.
    assert max(abs(a - b) for a, b in pairwise(steps)) < 0.006


@pytest.mark.parametrize("direction", few_of([1.5, 3.1, 0.0, 0.5, 2.5], 1))
def test_error_has_no_jumps_on_the_way_through_straight(direction):
    """The knee crosses the line in any direction; the reported error moves with it."""
    errors = []
    for step in range(-400, 401):
        part = 0.06 * step / 400
        heads, end = knee_at(part * math.cos(direction), part * math.sin(direction))
        errors.append(knee_error(heads, end, Vector((3.0, 1.0, 1.0)), X))
    assert max(abs(a - b) for a, b in pairwise(errors)) < 0.12


# --- arrays -------------------------------------------------------------------------------------------------


def motion(skeleton: Skeleton, shortest: float, noise: float) -> tuple[list[Pose], int]:
    """A foot that swings while the leg's length goes between almost straight and `shortest`, each frame from
    the one before; the poses, and in how many frames a goal is missed."""
    rng = random.Random(1)
    pose, found, missed = Pose.rest(skeleton), [], 0
    name = skeleton.joints[-1].name
    settings = SolverSettings(position_tolerance=1e-3, angle_tolerance=math.radians(0.5))
    for frame in range(FRAMES):
        a = math.tau * frame / FRAMES
        length = 2.0 - 1e-4 - 0.5 * (2.0 - shortest) * (1.0 - math.cos(2.0 * a))
        swing = 0.4 * math.sin(a)
        target = Vector((0.0, length * math.cos(swing), length * math.sin(swing)))
        target += noise * rng.uniform(-1.0, 1.0) * X
        pole = Vector((0.3 * math.sin(a), 1.0, -4.0))
        goals = [PositionGoal(name, target), PoleGoal("joint0", name, pole, priority=1)]
        result = solve(skeleton, pose, goals, settings)
        pose = result.pose
        found.append(pose)
        transforms = forward_kinematics(skeleton, pose)
        errors = [measure(goal, skeleton, transforms) for goal in goals]
        missed += errors[0].distance > 1e-3 or errors[1].angle > math.radians(0.5)
    return found, missed


def largest_step(poses: list[Pose]) -> float:
    """The largest rotation of a joint from one frame to the next, degrees."""
    return max(
        math.degrees(angle_between(p, q))
        for before, after in pairwise(poses)
        for p, q in zip(before.rotations, after.rotations, strict=True)
    )


def roll(rotation: Quaternion) -> float:
    """The part of a rotation about the bone, degrees."""
    return abs(math.degrees(math.remainder(2.0 * math.atan2(rotation.y, rotation.w), math.tau)))


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize("shortest", [2.0, 1.998, 1.98])
@pytest.mark.parametrize("skeleton", [leg(2, knee=KNEE), leg(2, 0.1), leg(4, 0.1)], ids=["knee", "2", "4"])
def test_a_leg_that_is_nearly_straight_does_not_spin(skeleton, shortest, noise):
    """The foot's swing alone turns the hip by 2.4 degrees a frame."""
    poses, missed = motion(skeleton, shortest, noise)
    assert missed == 0
    assert largest_step(poses) < 6.0


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize("shortest", [1.98, 1.7])
@pytest.mark.parametrize("rest_bend", [0.0, 0.1])
@pytest.mark.parametrize("count", [2, 4])
def test_in_between_bones_do_not_roll_because_of_a_pole(count, rest_bend, shortest, noise):
    poses, missed = motion(leg(count, rest_bend), shortest, noise)
    assert missed == 0
    assert max(roll(rotation) for pose in poses for rotation in pose.rotations[1:]) < 1.0


@pytest.mark.parametrize("solver", list(Solver))
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("angle", [0.0, 1.0, -2.5, 3.0, 7.0])
def test_the_bend_is_turned_from_the_pole_about_the_line(solver, count, angle):
    """The end is on the Y axis and the pole on the side of +Z: a positive turn about Y leads to +X."""
    name = f"joint{count - 1}"
    skeleton = leg(count, 0.3)
    goals = [
        PositionGoal(name, (0.0, 1.5, 0.0)),
        PoleGoal("joint0", name, (0.0, 1.0, 4.0), priority=1, angle=angle),
    ]
    result = solve(skeleton, Pose.rest(skeleton), goals, SolverSettings(solver=solver))
    transforms = forward_kinematics(skeleton, result.pose)
    bend = sum((each.translation for each in transforms[1:]), Vector())
    assert result.errors[0].distance < 1e-3
    assert math.remainder(math.atan2(bend.x, bend.z) - angle, math.tau) == pytest.approx(0.0, abs=3e-3)


def test_a_pole_alone_is_met_by_the_root_alone():
    skeleton = straight(4)
    pose = Pose.rest(skeleton).with_rotations({i: Quaternion(X, 0.02) for i in (1, 2, 3)})
    goal = PoleGoal("joint0", "joint3", (3.0, 1.0, 1.0))
    result = solve(skeleton, pose, [goal])
    assert result.errors[0].angle < 1e-3
    assert result.pose.rotations[1:] == pose.rotations[1:]
    ends = [forward_kinematics(skeleton, p)[3].point(Y) for p in (pose, result.pose)]
    assert (ends[0] - ends[1]).length < 1e-5
    heads = [place.translation for place in forward_kinematics(skeleton, result.pose)]
    assert chain_bend(heads, ends[1], Vector(), 12.0).angle(Vector((3.0, 0.0, 1.0))) < 0.2


@pytest.mark.parametrize("limit", [None, Hinge((1, 0, 0), -0.5, 2.5)], ids=["free", "hinge"])
def test_a_knee_that_is_bent_backwards_is_bent_forwards_and_the_hip_does_not_spin(limit):
    """The foot stays; the bend goes to the other side of the line."""
    skeleton = leg(2, 0.1, limit)
    start = Pose.rest(skeleton).with_rotations({1: Quaternion(X, -0.4)})
    end = forward_kinematics(skeleton, start)[1].point(Y)
    goals = [PositionGoal("joint1", end), PoleGoal("joint0", "joint1", (0.0, 1.0, -4.0), priority=1)]
    result = solve(skeleton, start, goals, SolverSettings(position_tolerance=1e-3, angle_tolerance=1e-2))
    assert result.errors[0].distance <= 1e-3
    assert result.errors[1].angle <= 1e-2
    assert forward_kinematics(skeleton, result.pose)[1].translation.z < 0.0
    assert angle_between(start.rotations[0], result.pose.rotations[0]) < 0.4
    assert max(roll(rotation) for rotation in result.pose.rotations) < 0.1


def test_a_stiff_root_swivels_all_the_way_and_a_locked_one_stays():
    skeleton = leg(2, 0.1)
    start = Pose.rest(skeleton).with_rotations({1: Quaternion(X, 0.5)})
    goal = PoleGoal("joint0", "joint1", (4.0, 1.0, -1.0))
    stiff = skeleton.replace({"joint0": {"stiffness": 0.9, "max_step": 0.1}})
    assert solve(stiff, start, [goal]).errors[0].angle < 1e-3
    locked = skeleton.replace({"joint0": {"stiffness": 1.0}})
    result = solve(locked, start, [goal])
    assert result.pose.rotations == start.rotations
    assert result.errors[0].angle > 0.5


# --- poles in line ------------------------------------------------------------------------------------------


def passing(beside: float) -> tuple[list[Pose], list[float], list[float]]:
    """An arm whose hand goes by its pole on a great circle, 2 degrees a frame: poses, how far off the pole is
    at each, radians, and how far the bend is off it."""
    skeleton, name = leg(2, 0.5), "joint1"
    pole = 4.0 * Vector((0.0, math.cos(beside), math.sin(beside)))
    settings = SolverSettings(position_tolerance=1e-4, angle_tolerance=1e-3)
    pose, poses, off, missed = Pose.rest(skeleton), [], [], []
    for frame in range(-40, 41):
        a = math.radians(2.0 * frame)
        target = 1.6 * Vector((math.sin(a), math.cos(a), 0.0))
        goals = [PositionGoal(name, target), PoleGoal("joint0", name, pole, priority=1)]
        result = solve(skeleton, pose, goals, settings)
        assert result.status is SolveStatus.CONVERGED
        pose = result.pose
        poses.append(pose)
        off.append(target.angle(pole))
        line = target.normalized()
        knee = forward_kinematics(skeleton, pose)[1].translation
        missed.append((knee - line * line.dot(knee)).angle(pole - line * line.dot(pole)))
    return poses, off, missed


@pytest.mark.parametrize("beside", [0.01, 0.05, 0.1, 0.2])
def test_a_hand_that_goes_by_its_pole_does_not_turn_its_arm_round_at_once(beside):
    """The pole's side turns by 2 degrees / sin(beside) a frame there: by up to 170."""
    poses, _, _ = passing(beside)
    assert largest_step(poses) < 22.0


@pytest.mark.parametrize("beside", [0.01, 0.2])
def test_a_pole_that_is_well_off_the_line_is_met_exactly(beside):
    _, off, missed = passing(beside)
    exact = [miss for angle, miss in zip(off, missed, strict=True) if math.sin(angle) >= OFF_LINE]
    assert len(exact) > 20
    assert max(exact) < 2e-3
    assert max(missed) > 0.5  # it gives way, and comes back


def test_play_falls_evenly_and_is_no_miss():
    """A bend that is off its pole by its play meets the goal, and what is past that counts."""
    for degrees in (5.0, 11.0, 20.0, 35.0, 50.0, 60.0, 90.0):
        a = math.radians(degrees)
        play = math.pi * min(max((OFF_LINE - math.sin(a)) / (OFF_LINE - IN_LINE), 0.0), 1.0)
        pole = 3.0 * Vector((math.sin(a), math.cos(a), 0.0))
        for turned in (0.0, 0.4, -1.3, 2.9):
            heads = [Vector(), Vector((0.5 * math.cos(turned), 1.0, 0.5 * math.sin(turned)))]
            error = knee_error(heads, Vector((0.0, 2.0, 0.0)), pole)
            assert error == pytest.approx(max(abs(turned) - play, 0.0), abs=1e-6)


@pytest.mark.parametrize("axis", [X, Y, Vector((0.6, -0.8, 0.0)), Z, Vector()])
def test_a_straight_chain_bends_about_its_axis(axis):
    """The bend of a line along Z is the line x the axis, as long for every axis across the line."""
    heads = [Vector((0.0, 0.0, k)) for k in range(3)]
    bend = chain_bend(heads, Vector((0.0, 0.0, 3.0)), axis, 6.0)
    across = Z.cross(axis)
    assert (bend - across * bend.length).length < 1e-6
    assert bool(bend.length > 0.0) is bool(across.length > 0.0)
    assert bend.length == pytest.approx(across.length * chain_bend(heads, Vector((0, 0, 3)), X, 6.0).length)


@pytest.mark.parametrize("solver", list(Solver))
def test_a_chain_that_is_far_from_straight_swings_round_to_its_pole(solver: Solver) -> None:
    """Its root turns, and the joints below keep their bend: only nearly straight chains are mirrored."""
    skeleton = straight(3)
    bent = Pose.rest(skeleton).with_rotations({i: Quaternion(X, 0.6) for i in (1, 2)})
    places = forward_kinematics(skeleton, bent)
    end = places[2].point(Y)
    away = end.cross(X).normalized()
    goals = [PositionGoal("joint2", end), PoleGoal("joint0", "joint2", 0.5 * end)]
    errors = []
    for side in (3.0, -3.0):
        goals[1] = PoleGoal("joint0", "joint2", 0.5 * end + side * away)
        result = solve(skeleton, bent, goals, SolverSettings(solver=solver))
        assert result.status is SolveStatus.CONVERGED
        errors.append(angle_between(result.pose.rotations[0], bent.rotations[0]))
        for i in (1, 2):
            assert angle_between(result.pose.rotations[i], bent.rotations[i]) < 1e-3
    assert sorted(errors) == pytest.approx([0.0, math.pi], abs=1e-3)
