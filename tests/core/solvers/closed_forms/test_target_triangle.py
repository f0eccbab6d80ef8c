"""Longer chains by target triangles."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from arms import CONVERGED, STALLED, checked
from chains import FLOAT32, SOLVE, Z, legal_pose, random_limit, random_rotation, straight, tail
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import OrientationGoal, PositionGoal
from ccd_rig.limits.shapes import Cone, Hinge, SwingTwist
from ccd_rig.maths.rotations import angle_between
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.closed_forms import target_triangle


def paper_chain(limited=True):
    """Song & Hu 2011, section 4: four joints of 9 and one of 4; omega_2 = 120, omega_3 = 90 degrees."""
    lengths = (9.0, 9.0, 9.0, 9.0, 4.0)
    cones = (None, math.radians(120.0), math.radians(90.0), None, None)
    return Skeleton(
        Joint(
            f"joint{i + 1}",
            i - 1,
            (0.0, lengths[i - 1] if i else 0.0, 0.0),
            Quaternion(),
            length,
            SwingTwist(Cone(cone)) if cone is not None and limited else None,
        )
        for i, (length, cone) in enumerate(zip(lengths, cones, strict=True))
    )


def triangle(skeleton, pose, target, **fields):
    goal = PositionGoal(skeleton.joints[-1].name, target)
    tolerance = fields.get("position_tolerance", 1e-4)
    return checked(skeleton, pose, goal, target_triangle(skeleton, pose, goal, **fields), tolerance)


def turned(pose, result):
    """Indices of the joints that turned."""
    pairs = zip(pose.rotations, result.pose.rotations, strict=True)
    return [i for i, (a, b) in enumerate(pairs) if angle_between(a, b) > SOLVE]


def test_triangle_turns_two_joints_and_leaves_the_rest_straight():
    skeleton = paper_chain(limited=False)
    pose = Pose.rest(skeleton)
    rng = random.Random(1)
    for _ in range(300):
        target = random_rotation(rng) @ Vector((0.0, rng.uniform(22.5, 39.9), 0.0))
        result = triangle(skeleton, pose, target)
        assert result.errors[0].distance <= 40 * FLOAT32
        assert len(turned(pose, result)) <= 2
        # phi_b and phi_c of the paper, by the law of cosines.
        places = forward_kinematics(skeleton, result.pose)
        a, b, c = 9.0, 31.0, target.length
        link = places[1].translation - places[0].translation
        assert link.angle(target) == pytest.approx(
            math.acos((a * a + c * c - b * b) / (2 * a * c)), abs=SOLVE
        )
        between = (target - places[1].translation).angle(-link)
        assert between == pytest.approx(math.acos((a * a + b * b - c * c) / (2 * a * b)), abs=2 * SOLVE)


def test_triangle_turns_the_link_by_theta_less_phi():
    """Signs: about V_r = V_e x V_t, by theta - phi_b, so the link stays on its side of the target."""
    skeleton = straight(2)
    target = Vector((1.2, 0.0, 0.0))
    result = triangle(skeleton, Pose.rest(skeleton), target)
    phi = math.acos(0.6)
    assert angle_between(result.pose.rotations[0], Quaternion(Z, -(math.pi / 2 - phi))) <= FLOAT32
    knee = forward_kinematics(skeleton, result.pose)[1].translation
    assert knee.y == pytest.approx(math.sin(phi), abs=FLOAT32)
    assert result.status is CONVERGED


def test_triangle_from_bent_starts():
    skeleton = paper_chain(limited=False)
    rng = random.Random(3)
    for _ in range(200):
        start = legal_pose(skeleton, rng)
        target = random_rotation(rng) @ Vector((0.0, rng.uniform(22.5, 39.9), 0.0))
        assert triangle(skeleton, start, target).errors[0].distance <= 40 * FLOAT32


def test_triangle_free_chain_reaches_everything_in_reach():
    """Also what is nearer than the first triangle: the link points away, the rest comes back."""
    skeleton = paper_chain(limited=False)
    rng = random.Random(4)
    for _ in range(300):
        target = random_rotation(rng) @ Vector((0.0, rng.uniform(0.01, 39.9), 0.0))
        assert triangle(skeleton, Pose.rest(skeleton), target).errors[0].distance <= 80 * FLOAT32


def test_triangle_too_far_is_straight():
    skeleton = paper_chain(limited=False)
    rng = random.Random(5)
    for _ in range(50):
        target = random_rotation(rng) @ Vector((0.0, rng.uniform(40.1, 90.0), 0.0))
        result = triangle(skeleton, legal_pose(skeleton, rng), target)
        assert result.errors[0].distance == pytest.approx(target.length - 40.0, abs=40 * FLOAT32)


@pytest.mark.parametrize("target", [(0.0, 25.0, 0.0), (0.0, -25.0, 0.0), (0.0, 39.9, 0.0), (0.0, -50.0, 0.0)])
def test_triangle_target_on_the_line_of_the_chain(target):
    skeleton = paper_chain(limited=False)
    result = triangle(skeleton, Pose.rest(skeleton), target)
    wanted = max(0.0, Vector(target).length - 40.0)
    assert result.errors[0].distance == pytest.approx(wanted, abs=40 * FLOAT32)


def test_triangle_target_at_a_head_and_links_without_length():
    skeleton = paper_chain(limited=False)
    result = triangle(skeleton, Pose.rest(skeleton), (0.0, 0.0, 0.0))
    assert result.status is STALLED or result.errors[0].distance <= 40 * FLOAT32
    nothing = Skeleton(Joint(f"joint{i}", i - 1, length=0.0) for i in range(3))
    result = triangle(nothing, Pose.rest(nothing), (1.0, 0.0, 0.0))
    assert result.pose == Pose.rest(nothing)
    zero_between = skeleton.replace({"joint3": {"offset": (0.0, 0.0, 0.0)}})
    result = triangle(zero_between, Pose.rest(zero_between), (20.0, 5.0, 3.0))
    assert result.status is CONVERGED


def test_triangle_too_near_and_one_long_link():
    skeleton = Skeleton([Joint("joint0", length=3.0), Joint("joint1", 0, (0.0, 3.0, 0.0), length=1.0)])
    result = triangle(skeleton, Pose.rest(skeleton), (1.0, 0.0, 0.0))
    assert result.errors[0].distance == pytest.approx(1.0, abs=FLOAT32)
    skeleton = Skeleton([Joint("joint0", length=1.0), Joint("joint1", 0, (0.0, 1.0, 0.0), length=3.0)])
    result = triangle(skeleton, Pose.rest(skeleton), (1.0, 0.0, 0.0))
    assert result.errors[0].distance == pytest.approx(1.0, abs=FLOAT32)


def test_triangle_ten_degree_steps_reach_what_the_exact_triangle_cannot():
    """omega of the paper: where the second joint could not bend so far, the first moves until it can."""
    skeleton = paper_chain(limited=False)
    omega = {"joint2": math.radians(120.0), "joint3": math.radians(90.0)}
    pose = Pose.rest(skeleton)
    rng = random.Random(6)
    met = changed = 0
    for _ in range(300):
        target = random_rotation(rng) @ Vector((0.0, rng.uniform(22.5, 30.0), 0.0))
        result = triangle(skeleton, pose, target, omega=omega, position_tolerance=0.01)
        places = [place.translation for place in forward_kinematics(skeleton, result.pose)]
        places.append(tail(skeleton, result.pose))
        links = [b - a for a, b in itertools.pairwise(places)]
        for i, largest in ((1, omega["joint2"]), (2, omega["joint3"])):
            assert links[i - 1].angle(links[i]) <= largest + FLOAT32
        met += result.status is CONVERGED
        changed += result.pose != triangle(skeleton, pose, target).pose
    assert changed >= 50  # the limit was in the way
    assert met >= 285


def test_triangle_omega_leaves_the_first_joint_free_as_it_has_no_link_before():
    skeleton, rng = paper_chain(limited=False), random.Random(7)
    pose = Pose.rest(skeleton)
    for _ in range(20):
        target = random_rotation(rng) @ Vector((0.0, rng.uniform(22.5, 30.0), 0.0))
        free = triangle(skeleton, pose, target)
        assert triangle(skeleton, pose, target, omega={"joint1": 0.1}).pose == free.pose


def test_triangle_leaves_a_joint_whose_head_is_at_the_target():
    skeleton = straight(2).replace({"joint1": {"length": 2.0}})
    pose = Pose.rest(skeleton).with_rotations({0: Quaternion(Z, 0.3), 1: Quaternion(Z, 1.0)})
    result = target_triangle(skeleton, pose, PositionGoal("joint1", (0.0, 0.0, 0.0)))
    assert result.pose.rotations[0] == pose.rotations[0]


def test_triangle_omega_counts_from_the_last_link_that_has_a_length():
    joints = [Joint("joint0", length=1.0), Joint("joint1", 0, (0.0, 1.0, 0.0), length=0.0)]
    skeleton = Skeleton([*joints, Joint("joint2", 1, (0.0, 0.0, 0.0), length=1.0)])
    result = triangle(skeleton, Pose.rest(skeleton), (1.0, 0.2, 0.0), omega={"joint2": 0.5})
    places = [place.translation for place in forward_kinematics(skeleton, result.pose)]
    link = tail(skeleton, result.pose) - places[2]
    assert link.angle(places[2] - places[0]) == pytest.approx(0.5, abs=FLOAT32)


def test_triangle_turns_a_hinge_to_the_side_of_its_target():
    """The last link turns about its axis to the azimuth of a target anywhere, as far as its range goes."""
    rng, skeleton = random.Random(8), straight(1, Hinge(Z, -1.5, 2.5))
    for _ in range(50):
        target = Vector([rng.gauss(0.0, 1.0) for _ in range(3)])
        rotation = triangle(skeleton, Pose.rest(skeleton), target).pose.rotations[0]
        azimuth = math.atan2(-target.x, target.y)
        end = min((2.5, -1.5), key=lambda each: off(each, azimuth))
        expected = azimuth if -1.5 <= azimuth <= 2.5 else end
        assert off(2.0 * math.atan2(rotation.z, rotation.w), expected) < 1e-5


def off(angle, other):
    """The angle between two directions in a plane."""
    return abs(math.remainder(angle - other, math.tau))


def test_triangle_with_cones_is_the_papers_omega():
    """The same angles as limits of the joints: kept, and as often met."""
    skeleton, pose = paper_chain(), Pose.rest(paper_chain())
    rng = random.Random(7)
    met = 0
    for _ in range(300):
        target = random_rotation(rng) @ Vector((0.0, rng.uniform(22.5, 30.0), 0.0))
        met += triangle(skeleton, pose, target, position_tolerance=0.01).status is CONVERGED
    assert met >= 285


def test_triangle_of_hinges_in_a_plane():
    skeleton = straight(4, Hinge(Z, -2.0, 2.0))
    pose = Pose.rest(skeleton).with_rotations({i: Quaternion(Z, 0.1) for i in range(4)})
    rng = random.Random(8)
    met = 0
    for _ in range(200):
        angle, far = rng.uniform(-0.8, 0.8), rng.uniform(2.0, 3.95)
        target = (far * math.sin(angle), far * math.cos(angle), 0.0)
        met += triangle(skeleton, pose, target, position_tolerance=SOLVE).status is CONVERGED
    assert met >= 195


@given(st.integers(0, 10**6))
def test_triangle_never_fails(seed):
    """Any limits, crooked rests, targets anywhere: finite, inside limits, errors true."""
    rng = random.Random(seed)
    count = rng.randrange(1, 7)
    skeleton = Skeleton(
        Joint(
            f"joint{i}",
            i - 1,
            [rng.uniform(-1.0, 1.0) for _ in range(3)] if rng.random() < 0.9 else (0.0, 0.0, 0.0),
            random_rotation(rng),
            rng.uniform(0.0, 2.0),
            random_limit(rng),
            stiffness=rng.choice((0.0, 0.5)),
        )
        for i in range(count)
    )
    omega = {"joint0": rng.uniform(0.0, math.pi)} if rng.random() < 0.5 else None
    triangle(skeleton, legal_pose(skeleton, rng), [rng.uniform(-5, 5) for _ in range(3)], omega=omega)


def test_triangle_refuses_bad_input():
    skeleton = straight(3)
    pose, goal = Pose.rest(skeleton), PositionGoal("joint2", (1.0, 0.0, 0.0))
    with pytest.raises(InvalidInput, match="no joint 'elbow'"):
        target_triangle(skeleton, pose, goal, omega={"elbow": 1.0})
    with pytest.raises(InvalidInput, match="omega of 'joint1' must be 0 to pi"):
        target_triangle(skeleton, pose, goal, omega={"joint1": 4.0})
    with pytest.raises(InvalidInput, match="omega of 'joint1' is nan; give a finite number"):
        target_triangle(skeleton, pose, goal, omega={"joint1": math.nan})
    with pytest.raises(InvalidInput, match="no reach window"):
        target_triangle(skeleton, pose, PositionGoal("joint2", (1.0, 0.0, 0.0), max_extension=0.9))
    locked = straight(3, stiffness=1.0)
    with pytest.raises(InvalidInput, match="0 joints that can turn"):
        target_triangle(locked, pose, goal)
    with pytest.raises(InvalidInput, match="takes a PositionGoal"):
        target_triangle(skeleton, pose, OrientationGoal("joint2", Quaternion()))
