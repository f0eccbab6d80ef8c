"""Two bones by the law of cosines: softness, reach and limits."""

from __future__ import annotations

import math
import random

import pytest
from arms import CONVERGED, STALLED, X, Y, arm, bend, checked
from chains import EXACT, FLOAT32, SOLVE, Z, legal_pose, random_rotation, tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Cone, EulerBox, Hinge, SwingTwist, violation
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.closed_forms import TwoBoneOptions, two_bone


def test_soft_eases_into_straight_and_never_is():
    skeleton, pose = arm()
    before, last = 0.0, 0.0
    for k in range(1, 400):
        distance = 0.01 * k
        result = bend(skeleton, pose, (distance, 0.0, 0.0), soft=0.2)
        there = tail(skeleton, result.pose).x
        expected = distance if distance <= 1.6 else 1.6 + 0.4 * (1.0 - math.exp(-(distance - 1.6) / 0.4))
        assert there == pytest.approx(expected, abs=FLOAT32)
        knee = result.pose.rotations[2].angle
        if k > 1:
            assert 0.0 < there - before <= 0.01 + FLOAT32  # no stop, no snap
            assert distance > 3.0 or abs(knee - last) <= 0.05
        before, last = there, knee
    # Without it the knee snaps: its speed grows without bound at full reach.
    hard = [bend(skeleton, pose, (d, 0.0, 0.0)).pose.rotations[2].angle for d in (1.99, 2.0)]
    assert abs(hard[1] - hard[0]) > 0.15


def test_reach_of_the_goal_caps_the_stretch():
    skeleton, pose = arm()
    goal = PositionGoal("middle", (5.0, 0.0, 0.0), max_extension=0.9)
    result = checked(skeleton, pose, goal, two_bone(skeleton, pose, goal))
    assert tail(skeleton, result.pose).length == pytest.approx(1.8, abs=FLOAT32)


def test_knee_with_a_positive_minimum_never_straightens():
    knee = Hinge(Z, -2.5, -0.3)
    skeleton, pose = arm(limits=(None, knee))
    result = bend(skeleton, pose, (2.0, 0.0, 0.0), pole=Y)
    assert result.status is STALLED
    assert 2.0 * math.asin(abs(result.pose.rotations[2].z)) == pytest.approx(0.3, abs=FLOAT32)
    near = bend(skeleton, pose, (1.0, 0.5, 0.3), pole=Y)
    assert near.status is CONVERGED


def test_knee_bends_the_way_its_limit_lets_it():
    """From straight, and from outside the limit, every target in reach is met with the one legal bend."""
    rng = random.Random(6)
    for limit in (Hinge(X, 0.0, 2.9), Hinge(X, -2.9, 0.0), EulerBox("XYZ", (0.0, 0.0, 0.0), (2.9, 0.0, 0.0))):
        skeleton, pose = arm(limits=(None, limit))
        for _ in range(50):
            target = random_rotation(rng) @ Vector((0.0, rng.uniform(0.4, 1.95), 0.0))
            for start in (Pose.rest(skeleton), pose):
                assert bend(skeleton, start, target).status is CONVERGED


@pytest.mark.parametrize("turned", [-2.4, -1.1, 0.3, 1.7])
def test_a_hinge_that_is_free_keeps_the_side_of_its_bend(turned):
    """The bones form an angle of 0.7 at rest; either side gives every distance."""
    skeleton, _ = arm(limits=(None, Hinge(Z, -math.pi, math.pi)), lengths=(1.0, 0.8))
    skeleton = skeleton.replace({"middle": {"rest_rotation": Quaternion(Z, 0.7)}})
    pose = Pose.rest(skeleton).with_rotations({2: Quaternion(Z, turned)})
    for distance in (0.5, 1.0, 1.6):
        bent = bend(skeleton, pose, (distance, 0.0, 0.0)).pose.rotations[2]
        cosine = (distance**2 - 1.0 - 0.8**2) / (2.0 * 0.8)  # of the angle between the bones
        wanted = math.copysign(math.acos(cosine), 0.7 + turned)
        assert math.remainder(0.7 + 2.0 * math.atan2(bent.z, bent.w) - wanted, math.tau) == pytest.approx(
            0.0, abs=FLOAT32
        )


def test_hinge_askew_to_the_bones():
    """A hinge that is not at right angles to its bones still gives every distance it can."""
    rng = random.Random(7)
    for _ in range(200):
        axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        skeleton, _ = arm(limits=(None, Hinge(axis, -math.pi, math.pi)))
        target = tail(skeleton, legal_pose(skeleton, rng))
        assert bend(skeleton, legal_pose(skeleton, rng), target).errors[0].distance <= 30 * EXACT


def test_two_hinges_in_a_plane():
    hinges = (Hinge(Z, -math.pi, math.pi), Hinge(Z, -2.0, 2.0))
    skeleton, pose = arm(limits=hinges)
    rng = random.Random(8)
    for _ in range(100):
        legal = legal_pose(skeleton, rng).with_rotations({0: Quaternion()})
        assert bend(skeleton, pose, tail(skeleton, legal)).status is CONVERGED


def test_pole_and_limit_together():
    """The pole turns the arm as far as the root joint's twist allows, and the target is still met."""
    skeleton, pose = arm(limits=(SwingTwist(Cone(2.0), (-0.3, 0.3)), None))
    free = bend(skeleton, pose, (1.0, 1.0, 0.0), pole=(0.0, 0.0, 5.0))
    assert free.status is CONVERGED
    knee = forward_kinematics(skeleton, free.pose)[2].translation
    assert knee.z > 0.05  # towards the pole, though not all the way
    limit = skeleton.joints[1].limit
    assert violation(limit, free.pose.rotations[1]) <= FLOAT32


def test_a_leg_meets_every_legal_target():
    """Hip with cone and twist, knee that never straightens, pole in front: it swivels inside the limits."""
    hip, knee = SwingTwist(Cone(1.2), (-0.5, 0.5)), Hinge(X, 0.05, 2.6)
    skeleton, _ = arm(limits=(hip, knee), lengths=(1.0, 0.9))
    start = Pose.rest(skeleton)
    rng = random.Random(10)
    for _ in range(300):
        legal = legal_pose(skeleton, rng).with_rotations({0: Quaternion()})
        result = bend(skeleton, start, tail(skeleton, legal), pole=(0.0, 1.0, 3.0), position_tolerance=SOLVE)
        assert result.errors[0].distance <= SOLVE


@pytest.mark.parametrize("seed", [3, 4, 8, 24])
def test_a_forearm_along_one_of_its_own_axes_bends_about_the_others(seed):
    """Turns about that axis do not bend: where the limit forbids the bend's plane the next axis is tried."""
    rng = random.Random(seed)
    limit = SwingTwist(Cone(rng.uniform(0.5, 1.5)), (-0.2, 0.2))
    skeleton, _ = arm(limits=(None, limit))
    skeleton = skeleton.replace({"middle": {"rest_rotation": random_rotation(rng)}})
    along = skeleton.joints[2].rest_rotation.conjugated() @ Y
    aside = (X - along * X.dot(along)).normalized()
    legal = legal_pose(skeleton, rng).with_rotations({0: Quaternion()})
    target = forward_kinematics(skeleton, legal)[2].point(aside)
    goal, start = PositionGoal("middle", target, aside), Pose.rest(skeleton)
    result = checked(skeleton, start, goal, two_bone(skeleton, start, goal))
    assert result.status is CONVERGED


@pytest.mark.parametrize(("lower", "upper", "way"), [(-0.7, 0.1, 1.0), (-1.5, -0.5, -1.0), (-1.5, 0.1, -1.0)])
@pytest.mark.parametrize("pole", [(0.0, 1.0, 3.0), (2.0, 1.0, -1.0)])
def test_a_straight_chain_would_bend_to_the_pole_where_its_hinge_has_room(lower, upper, way, pole):
    """The elbow is bent by 0.6 at rest and straightened by its hinge; the target is too far."""
    skeleton, _ = arm(limits=(None, Hinge(X, lower, upper)))
    skeleton = skeleton.replace({"middle": {"rest_rotation": Quaternion(X, 0.6)}})
    pose = Pose.rest(skeleton).with_rotations({2: Quaternion(X, -0.6)})
    result = bend(skeleton, pose, (0.0, 5.0, 0.0), pole=pole)
    bent = result.pose.with_rotations({2: Quaternion(X, -0.6 + 0.1 * way)})
    places = forward_kinematics(skeleton, bent)
    elbow, end = places[2].translation, places[2].point(Vector((0.0, 1.0, 0.0)))
    aside = elbow - elbow.project(end)
    towards = Vector(pole) - Vector(pole).project(end)
    assert aside.length > 0.04 and aside.angle(towards) < 1e-3


def test_soft_and_reach_are_not_limits():
    """What they leave is no reason to refuse a result."""
    skeleton, pose = arm()
    goal = PositionGoal("middle", (1.95, 0.0, 0.0), max_extension=0.9)
    for fields in ({"soft": 0.0}, {"soft": 0.5}):
        result = two_bone(skeleton, pose, goal, TwoBoneOptions(accept_limited=False, **fields))
        assert result.status is STALLED
        assert result.pose != pose


def test_a_limited_result_can_be_refused():
    skeleton, pose = arm(limits=(SwingTwist(Cone(0.2)), Hinge(Z, -2.5, 0.0)))
    limited = bend(skeleton, pose, (0.0, -1.0, 1.0))
    assert limited.status is STALLED
    assert limited.pose != pose
    refused = bend(skeleton, pose, (0.0, -1.0, 1.0), accept_limited=False)
    assert refused.status is STALLED
    assert refused.pose == pose
    # Out of reach is not limited: the stretched chain is given back.
    free, start = arm()
    assert bend(free, start, (5.0, 0.0, 0.0), accept_limited=False).pose != start
