"""Planar chains of hinges, and ball joints taken apart into three hinges."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from chains import EXACT, FLOAT32, SOLVE, legal_pose, random_rotation, straight, tail
from mathutils import Euler, Quaternion, Vector
from seeds import few_and_all

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import (
    Comfort,
    Cone,
    EulerBox,
    Hinge,
    Slide,
    SwingTwist,
    contains,
    sample,
    violation,
)
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import SolverSettings, SolveStatus, Sweep
from ccd_rig.skeleton.builders import hinge_names, planar_chain, split_ball
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import iterate, solve

ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
CONVERGED, OPTIMAL = SolveStatus.CONVERGED, SolveStatus.OPTIMAL


# -- planar chains


def planar_tail(lengths, angles):
    """Where Juckett's bones end: complex numbers, one after the other."""
    turns = itertools.accumulate(angles)
    end = sum(
        length * complex(math.cos(turn), math.sin(turn)) for length, turn in zip(lengths, turns, strict=True)
    )
    return Vector((end.real, end.imag, 0.0))


def test_angles_are_those_of_the_plane():
    rng = random.Random(1)
    for _ in range(100):
        count = rng.randrange(1, 8)
        lengths = [rng.uniform(0.0, 2.0) for _ in range(count)]
        angles = [rng.uniform(-math.pi, math.pi) for _ in range(count)]
        skeleton, pose = planar_chain(lengths, angles)
        assert (tail(skeleton, pose) - planar_tail(lengths, angles)).length <= count * FLOAT32


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -2), (1, 0, 0), (0.3, -0.5, 0.2), (0, 1, 0)])
def test_any_plane(axis):
    lengths, angles = [1.0, 0.5, 0.7], [0.3, 1.0, -0.4]
    skeleton, pose = planar_chain(lengths, angles, axis=axis)
    normal = Vector(axis).normalized()
    places = forward_kinematics(skeleton, pose)
    zero, _ = planar_chain([1.0], axis=axis)
    along = tail(zero, Pose.rest(zero))
    assert abs(along.dot(normal)) <= EXACT
    turned = Quaternion(normal, angles[0]) @ along
    assert (places[1].translation - turned).length <= FLOAT32
    for place in places:
        assert abs(place.translation.dot(normal)) <= FLOAT32


@pytest.mark.parametrize(
    ("angles", "target", "status"),
    [
        ([0.0, 0.0], (1.5, 0.5, 0.0), CONVERGED),
        ([math.pi / 2, 0.0], (-0.5, -1.0, 0.0), CONVERGED),
        ([0.1, -0.1], (1.9, 0.0, 0.0), CONVERGED),
        ([0.0, 0.0], (3.0, 0.0, 0.0), OPTIMAL),
    ],
)
def test_two_unit_links(angles, target, status):
    skeleton, pose = planar_chain([1.0, 1.0], angles)
    result = solve(skeleton, pose, [PositionGoal("joint1", target)], SolverSettings(position_tolerance=SOLVE))
    assert result.status is status


def test_juckett_states():
    """Processing until the last pass; Success; Failure out of reach; his folded dead end is left."""
    skeleton, pose = planar_chain([1.0, 1.0, 1.0], [0.5, 0.5, 0.5])
    goal = PositionGoal("joint2", (-1.0, 0.5, 0.0))
    chosen = SolverSettings(position_tolerance=1e-4, sweep=Sweep.TIP_TO_ROOT, step_fraction=1.0)
    states = [item.status for item in iterate(skeleton, pose, [goal], chosen)]
    assert states[-1] is CONVERGED
    assert set(states[:-1]) <= {SolveStatus.ITERATION_LIMIT}
    far = solve(skeleton, pose, [PositionGoal("joint2", (-9.0, 0.0, 0.0))], chosen)
    assert far.status is OPTIMAL
    # Folded, the target between: both joints are where CCD wants them, and still the target is in reach.
    skeleton, pose = planar_chain([2.0, 1.0], [0.0, math.pi])
    result = solve(skeleton, pose, [PositionGoal("joint1", (1.5, 0.0, 0.0))], chosen)
    assert result.status is CONVERGED


def test_limits_of_a_planar_chain():
    skeleton, pose = planar_chain([1.0] * 4, limits=[(-0.5, 0.5), None, (0.1, 2.0), (-1.0, 0.0)])
    assert [joint.limit.lower for joint in skeleton.joints] == [-0.5, -math.pi, 0.1, -1.0]
    rng = random.Random(3)
    for _ in range(50):
        target = tail(skeleton, legal_pose(skeleton, rng))
        result = solve(skeleton, pose, [PositionGoal("joint3", target)])
        for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
            assert violation(joint.limit, rotation) <= FLOAT32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: planar_chain([]), "at least one bone"),
        (lambda: planar_chain([1.0, 1.0], [0.0]), "2 lengths need 2 angles, not 1"),
        (lambda: planar_chain([1.0, 1.0], limits=[None]), "2 lengths need 2 limits, not 1"),
        (lambda: planar_chain([1.0], [math.nan]), r"angles\[0\] is nan; give a finite number"),
        (lambda: planar_chain([1.0], axis=(0, 0, 0)), "axis is zero"),
        (lambda: planar_chain([-1.0]), "'joint0': length"),
        (lambda: planar_chain([1.0], limits=[(1.0, 0.0)]), "lower .* above upper"),
    ],
)
def test_planar_chain_refuses_bad_input(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


# -- ball joints taken apart


def hand_on_arm(limit=None, **fields):
    joints = [
        Joint("body", -1, (0.1, 0.2, 0.3), random_rotation(random.Random(1)), 0.7),
        Joint("arm", 0, (0.0, 0.7, 0.0), random_rotation(random.Random(2)), 1.0, limit, mass=2.0, **fields),
        Joint("hand", 1, (0.0, 1.0, 0.0), length=0.5),
        Joint("watch", 1, (0.1, 0.9, 0.0), length=0.1),
    ]
    return Skeleton(joints)


def frames(skeleton, pose):
    return dict(zip((j.name for j in skeleton.joints), forward_kinematics(skeleton, pose), strict=True))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cases", few_and_all(50, 200))
def test_three_hinges_turn_like_the_ball(order, cases):
    rng = random.Random(4 + cases[0])
    skeleton = hand_on_arm()
    for _ in cases:
        pose = Pose(
            tuple(random_rotation(rng) for _ in range(4)),
            tuple(Vector([rng.gauss(0.0, 0.2) for _ in range(3)]) for _ in range(4)),
        )
        split, moved = split_ball(skeleton, pose, "arm", order)
        names = hinge_names("arm", order)
        assert [joint.name for joint in split.joints] == ["body", *names, "hand", "watch"]
        assert [split.joints[i].limit.axis["XYZ".index(order[3 - i])] for i in (1, 2, 3)] == [1.0, 1.0, 1.0]
        before, after = frames(skeleton, pose), frames(split, moved)
        for name, place in before.items():
            assert (place.translation - after[name].translation).length <= 10 * EXACT
            assert angle_between(place.rotation, after[name].rotation) <= 10 * EXACT
        product = Quaternion()
        for i in (1, 2, 3):
            assert isinstance(split.joints[i].limit, Hinge)
            assert violation(split.joints[i].limit, moved.rotations[i]) <= FLOAT32
            product = product @ moved.rotations[i]
        assert angle_between(product, pose.rotations[1]) <= 10 * EXACT
        assert [split.joints[i].length for i in (1, 2, 3)] == [0.0, 0.0, 1.0]
        assert [split.joints[i].mass for i in (1, 2, 3)] == [0.0, 0.0, 2.0]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cases", few_and_all(50, 200))
def test_the_joints_own_box_becomes_three_ranges(order, cases):
    """Inside the box is inside the hinges, also by the other angles and at gimbal lock; and back."""
    rng = random.Random(5 + cases[0])
    for trial in cases:
        lower = [rng.uniform(-3.0, 2.0) for _ in range(3)]
        upper = [low + rng.uniform(0.0, 2.5) for low in lower]
        if trial % 4 == 0:  # the middle angle at gimbal lock only
            middle = "XYZ".index(order[1])
            lower[middle] = upper[middle] = rng.choice((-1.0, 1.0)) * math.pi / 2
        box = EulerBox(order, lower, upper)
        skeleton = hand_on_arm(box)
        inside = sample(box, rng)
        split, moved = split_ball(skeleton, Pose.rest(skeleton).with_rotations({1: inside}), "arm", order)
        for joint, rotation in zip(split.joints, moved.rotations, strict=True):
            assert joint.limit is None or violation(joint.limit, rotation) <= 2 * FLOAT32
        product = moved.rotations[1] @ moved.rotations[2] @ moved.rotations[3]
        assert angle_between(product, inside) <= 10 * EXACT
        legal = [sample(joint.limit, rng) for joint in split.joints[1:4]]
        assert contains(box, legal[0] @ legal[1] @ legal[2], FLOAT32)


def test_euler_angles_are_blenders():
    angles = (0.4, -0.7, 1.1)
    for order in ORDERS:
        skeleton = hand_on_arm()
        rotation = Euler(angles, order).to_quaternion()
        _, moved = split_ball(skeleton, Pose.rest(skeleton).with_rotations({1: rotation}), "arm", order)
        for place, name in enumerate(reversed(order)):
            axis = Vector([float(name == other) for other in "XYZ"])
            expected = Quaternion(axis, angles["XYZ".index(name)])
            assert angle_between(moved.rotations[1 + place], expected) <= 10 * EXACT


def test_limits_given_and_what_goes_where():
    comfort = Comfort(0.1, EulerBox("ZXY", (-0.1, -0.2, -0.3), (0.1, 0.2, 0.3)))
    slide = Slide((0.0, 1.0, 0.0), -1.0, 1.0)
    skeleton = hand_on_arm(None, comfort=comfort, stiffness=0.3, max_step=0.5, slides=(slide,))
    split, _ = split_ball(skeleton, Pose.rest(skeleton), "arm", "ZXY", [(-0.5, 0.5), None, (-0.4, 1.0)])
    parts = {joint.name: joint for joint in split.joints}
    first, second, bone = (parts[name] for name in hinge_names("arm", "ZXY"))
    assert [joint.name for joint in (first, second, bone)] == ["arm.Y", "arm.X", "arm"]
    assert (first.limit.lower, first.limit.upper) == (-math.pi, math.pi)
    assert (second.limit.lower, second.limit.upper) == (-0.5, 0.5)
    assert (bone.limit.lower, bone.limit.upper) == (-0.4, 1.0)
    assert (first.slides, second.slides, bone.slides) == ((slide,), (), ())
    for joint, half in ((first, 0.2), (second, 0.1), (bone, 0.3)):
        assert joint.comfort.tolerance == 0.1
        assert joint.comfort.region.upper == half
        assert (joint.stiffness, joint.max_step) == (0.3, 0.5)
    box = EulerBox("XYZ", (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    split, _ = split_ball(hand_on_arm(SwingTwist(Cone(1.0))), Pose.rest(skeleton), "arm", limits=box)
    assert split.joints[3].limit == Hinge((1.0, 0.0, 0.0), -1.0, 1.0)


def test_a_ball_that_does_not_inherit_rotation():
    rng = random.Random(6)
    skeleton = hand_on_arm(None, inherit_rotation=False)
    pose = Pose.rest(skeleton).with_rotations({i: random_rotation(rng) for i in range(4)})
    split, moved = split_ball(skeleton, pose, "arm")
    before, after = frames(skeleton, pose), frames(split, moved)
    for name, place in before.items():
        assert (place.translation - after[name].translation).length <= 10 * EXACT
        assert angle_between(place.rotation, after[name].rotation) <= 10 * EXACT


def test_hinges_reach_what_the_balls_reach():
    """A chain of three balls and the same of nine hinges: the targets of one are met by the other."""
    rng = random.Random(7)
    box = EulerBox("XYZ", (-1.0, -0.6, -1.0), (1.0, 0.6, 1.0))
    balls = straight(3, box)
    start = Pose.rest(balls).with_rotations({i: Euler((0.2, 0.1, -0.1)).to_quaternion() for i in range(3)})
    hinges, moved = balls, start
    for i in range(3):
        hinges, moved = split_ball(hinges, moved, f"joint{i}")
    assert len(hinges) == 9
    settings = SolverSettings(position_tolerance=SOLVE, max_iterations=1000)
    met = {"balls": 0, "hinges": 0}
    for _ in range(100):
        goal = PositionGoal("joint2", tail(balls, legal_pose(balls, rng)))
        for name, skeleton, pose in (("balls", balls, start), ("hinges", hinges, moved)):
            result = solve(skeleton, pose, [goal], settings)
            met[name] += result.status is CONVERGED
            for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
                assert violation(joint.limit, rotation) <= FLOAT32
    print(f"reached of 100: {met}")
    assert met["hinges"] >= 98
    assert met["balls"] >= 98


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"joint": "leg"}, "no joint 'leg'"),
        ({"order": "XYX"}, "order must be one of"),
        ({"limits": [None, None]}, "give three limits"),
        ({"limits": EulerBox("ZYX", (0, 0, 0), (1, 1, 1))}, "limits' order is ZYX"),
        ({"limits": [(1.0, 0.0), None, None]}, "lower .* above upper"),
    ],
)
def test_split_ball_refuses_bad_input(fields, message):
    skeleton = hand_on_arm()
    with pytest.raises(InvalidInput, match=message):
        split_ball(skeleton, Pose.rest(skeleton), **{"joint": "arm", **fields})


def test_split_ball_refuses_limits_that_three_angles_do_not_say():
    cone = hand_on_arm(SwingTwist(Cone(1.0)))
    with pytest.raises(InvalidInput, match="limit of joint 'arm' is not an EulerBox of order XYZ"):
        split_ball(cone, Pose.rest(cone), "arm")
    region = hand_on_arm(None, comfort=Comfort(0.0, SwingTwist(Cone(0.5))))
    with pytest.raises(InvalidInput, match="comfort region of joint 'arm' is not an EulerBox"):
        split_ball(region, Pose.rest(region), "arm")
    with pytest.raises(InvalidInput, match="pose is for"):
        split_ball(cone, Pose.rest(straight(2)), "arm")
    taken = Skeleton([*hand_on_arm().joints, Joint("arm.Y")])
    with pytest.raises(InvalidInput, match=r"'arm\.Y' stands twice"):
        split_ball(taken, Pose.rest(taken), "arm")


def test_free_hinges_go_on_past_a_half_turn():
    """From 170 degrees to -170 degrees is 20 degrees, in each part of a step and in every order."""
    for sweep in (Sweep.TIP_TO_ROOT, Sweep.ROOT_TO_TIP):
        for fraction in (0.3, 1.0):
            skeleton, pose = planar_chain([1.0], [math.radians(170.0)])
            target = planar_tail([1.0], [math.radians(-170.0)])
            settings = SolverSettings(sweep=sweep, step_fraction=fraction, position_tolerance=1e-3)
            last = pose.rotations[0]
            for item in iterate(skeleton, pose, [PositionGoal("joint0", target)], settings):
                assert angle_between(item.pose.rotations[0], last) <= math.radians(21.0)
                last = item.pose.rotations[0]
            assert item.status is CONVERGED
