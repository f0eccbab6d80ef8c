"""The single-pass solvers: two bones by the law of cosines, longer chains by target triangles."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from chains import EXACT, FLOAT32, SOLVE, Z, legal_pose, random_limit, random_rotation, straight, tail
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import OrientationGoal, PositionGoal, measure
from ccd_rig.limits.shapes import Cone, EulerBox, Hinge, SwingTwist, violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.analytic.target_triangle import target_triangle
from ccd_rig.solvers.analytic.two_bone import TwoBoneOptions, two_bone

CONVERGED, STALLED = SolveStatus.CONVERGED, SolveStatus.STALLED
X, Y = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0))
OZZ_ROTATION = 2e-3  # the tolerances of ozz-animation's own tests: rotations,
OZZ_REACH = 1e-2  # and the distance to the target


def arm(move=(0.0, 0.0, 0.0), turn=None, limits=(None, None), lengths=(1.0, 1.0)):
    """ozz's two bones: start at the origin, middle at (0, 1, 0) bent 90 degrees about Z, end at (1, 1, 0).

    `move` and `turn` place a locked root joint below, and so everything, elsewhere in model space.
    """
    joints = [
        Joint("root", -1, move, turn or Quaternion(), 0.0, stiffness=1.0),
        Joint("start", 0, (0.0, 0.0, 0.0), Quaternion(), lengths[0], limits[0]),
        Joint("middle", 1, (0.0, lengths[0], 0.0), Quaternion(), lengths[1], limits[1]),
    ]
    skeleton = Skeleton(joints)
    return skeleton, Pose.rest(skeleton).with_rotations({2: Quaternion(Z, -math.pi / 2)})


def checked(skeleton, pose, goal, result, tolerance=1e-4):
    """Holds what is reported against forward kinematics, and every limit."""
    places = forward_kinematics(skeleton, result.pose)
    assert measure(goal, skeleton, places) == result.errors[0]
    assert (result.errors[0].distance <= tolerance) == (result.status is CONVERGED)
    chain = skeleton.chain(goal.joint, goal.chain_length)
    for i, joint in enumerate(skeleton.joints):
        assert all(math.isfinite(part) for part in result.pose.rotations[i])
        if i in chain and joint.limit is not None and not joint.locked:
            assert violation(joint.limit, result.pose.rotations[i]) <= FLOAT32
        if i not in chain or joint.locked:
            assert result.pose.rotations[i] == pose.rotations[i]
    assert result.pose.translations == pose.translations
    assert result.iterations == 1
    return result


def bend(skeleton, pose, target, **fields):
    goal = PositionGoal("middle", target)
    tolerance = fields.pop("position_tolerance", 1e-4)
    options = TwoBoneOptions(**fields)
    result = two_bone(skeleton, pose, goal, options, position_tolerance=tolerance)
    return checked(skeleton, pose, goal, result, tolerance)


PLACES = [
    ((0.0, 0.0, 0.0), Quaternion()),
    ((0.0, 0.0, 5.0), Quaternion()),
    ((-2.0, 1.0, 0.5), Quaternion((1.0, 0.0, 0.0), math.pi / 3)),
    ((3.0, 0.2, -7.0), Quaternion((0.3, -0.5, 0.8), 2.5)),
]


@pytest.mark.parametrize(("move", "turn"), PLACES)
@pytest.mark.parametrize("hinged", [False, True])
@pytest.mark.parametrize(
    ("target", "start", "middle", "reached"),
    [
        ((1.0, 1.0, 0.0), Quaternion(), Quaternion(), True),
        ((0.0, 1.0, 1.0), Quaternion(Y, -math.pi / 2), Quaternion(), True),
        ((-1.0, 1.0, 0.0), Quaternion(Y, math.pi), Quaternion(), True),
        ((0.0, 1.0, -1.0), Quaternion(Y, math.pi / 2), Quaternion(), True),
        ((2.0, 0.0, 0.0), Quaternion(Z, -math.pi / 2), Quaternion(Z, math.pi / 2), True),
        ((3.0, 0.0, 0.0), Quaternion(Z, -math.pi / 2), Quaternion(Z, math.pi / 2), False),
    ],
)
def test_ozz_cases(move, turn, hinged, target, start, middle, reached):
    """Corrections are relative to the start pose, in the start's parent's and the middle's own frame."""
    limits = (None, Hinge(Z, -math.pi, 0.0) if hinged else None)
    skeleton, pose = arm(move, turn, limits)
    place = Vector(move)
    result = bend(
        skeleton, pose, place + turn @ Vector(target), pole=place + turn @ Y, position_tolerance=OZZ_REACH
    )
    assert angle_between(result.pose.rotations[1], start) <= OZZ_ROTATION
    assert angle_between(result.pose.rotations[2], pose.rotations[2] @ middle) <= OZZ_ROTATION
    assert (result.status is CONVERGED) == reached
    if not reached:
        assert result.errors[0].distance == pytest.approx(1.0, abs=FLOAT32)


@pytest.mark.parametrize(
    ("weight", "share"), [(0.5, 0.5), (0.0, 0.0), (1.0, 1.0), (-0.3, 0.0), (1.7, 1.0), (0.25, 0.25)]
)
def test_ozz_weight_is_clamped_and_halves_both_rotations(weight, share):
    skeleton, pose = arm()
    result = bend(skeleton, pose, (2.0, 0.0, 0.0), pole=Y, weight=weight)
    assert angle_between(result.pose.rotations[1], Quaternion(Z, -share * math.pi / 2)) <= OZZ_ROTATION
    assert angle_between(result.pose.rotations[2], Quaternion(Z, (share - 1.0) * math.pi / 2)) <= OZZ_ROTATION
    if share == 0.0:
        assert result.pose == pose


@pytest.mark.parametrize("angle", [0.0, 1.2, -3.0])
def test_the_bend_points_to_the_pole(angle):
    rng = random.Random(1)
    skeleton, _ = arm()
    for _ in range(300):
        pose = Pose.rest(skeleton).with_rotations({1: random_rotation(rng), 2: random_rotation(rng)})
        target = Vector([rng.uniform(-1.0, 1.0) for _ in range(3)])
        pole = Vector([rng.uniform(-3.0, 3.0) for _ in range(3)])
        result = bend(skeleton, pose, target, pole=pole, pole_angle=angle)
        assert result.status is CONVERGED
        knee = forward_kinematics(skeleton, result.pose)[2].translation
        line = target.normalized()
        side, wanted = knee - line * knee.dot(line), pole - line * pole.dot(line)
        wanted = Quaternion(line, angle) @ wanted
        assert side.angle(wanted) <= 1e-3


def test_any_effector_and_rigid_joints_between():
    """The goal's bone may be a locked joint above, its effector anywhere; locked joints may lie between."""
    rng = random.Random(2)
    for _ in range(100):
        joints = [
            Joint("a", -1, [rng.uniform(-1, 1) for _ in range(3)], random_rotation(rng)),
            Joint("spacer", 0, (0.1, 0.7, 0.2), random_rotation(rng), stiffness=1.0),
            Joint("b", 1, (0.0, 0.5, 0.1), random_rotation(rng)),
            Joint("hand", 2, (0.2, 0.9, 0.0), random_rotation(rng), max_step=0.0),
        ]
        skeleton = Skeleton(joints)
        pose = Pose(
            tuple(random_rotation(rng) for _ in joints),
            tuple(Vector([rng.gauss(0.0, 0.1) for _ in range(3)]) for _ in joints),
        )
        other = pose.with_rotations({0: random_rotation(rng), 2: random_rotation(rng)})
        effector = (0.3, -0.2, 0.1)
        target = forward_kinematics(skeleton, other)[3].point(Vector(effector))
        goal = PositionGoal("hand", target, offset=effector)
        result = checked(skeleton, pose, goal, two_bone(skeleton, pose, goal))
        assert result.status is CONVERGED
        assert result.errors[0].distance <= 10 * EXACT


def test_only_the_last_two_joints_of_the_chain_turn():
    skeleton = straight(5)
    pose = Pose.rest(skeleton).with_rotations({i: Quaternion(X, 0.4) for i in range(5)})
    goal = PositionGoal("joint3", (0.0, 2.5, 1.0))
    result = two_bone(skeleton, pose, goal)
    assert [i for i in range(5) if result.pose.rotations[i] != pose.rotations[i]] == [2, 3]


# -- two bones: what is degenerate


def test_target_at_the_root_joints_head_folds_equal_bones():
    skeleton, pose = arm()
    result = bend(skeleton, pose, (0.0, 0.0, 0.0), pole=(0.0, 0.0, 5.0))
    assert result.status is CONVERGED
    assert angle_between(result.pose.rotations[2], Quaternion(Z, -math.pi)) <= SOLVE


@pytest.mark.parametrize(("lengths", "residual"), [((1.0, 0.4), 0.6), ((0.4, 1.0), 0.6)])
def test_target_too_near_is_missed_by_the_difference(lengths, residual):
    skeleton, pose = arm(lengths=lengths)
    for target in ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.0, -0.2)):
        result = bend(skeleton, pose, target, pole=(0.0, 0.0, 5.0))
        assert result.status is STALLED
        assert result.errors[0].distance == pytest.approx(residual - Vector(target).length, abs=FLOAT32)


def test_target_too_far_is_aimed_at():
    skeleton, pose = arm(lengths=(1.0, 0.5))
    result = bend(skeleton, pose, (0.0, -3.0, 4.0))
    assert result.errors[0].distance == pytest.approx(3.5, abs=FLOAT32)


@pytest.mark.parametrize("target", [(0.0, 1.2, 0.0), (0.0, 2.0, 0.0), (0.0, -1.2, 0.0), (0.0, -2.0, 0.0)])
@pytest.mark.parametrize("pole", [None, (1.0, 0.5, 0.0), (-1.0, 1.0, 0.3), (0.0, 3.0, 0.0)])
def test_straight_chain_with_the_target_on_its_line(target, pole):
    """The last pole lies on the chain's axis: no side to bend to, the joint's own X axis is taken."""
    skeleton, pose = arm()
    pose = Pose.rest(skeleton)
    result = bend(skeleton, pose, target, pole=pole)
    assert result.status is CONVERGED
    knee = forward_kinematics(skeleton, result.pose)[2].translation
    if pole is None or pole[0] == 0.0:
        assert abs(knee.x) <= FLOAT32
    elif abs(target[1]) < 2.0:
        side = Vector((pole[0], 0.0, pole[2]))
        assert Vector((knee.x, 0.0, knee.z)).angle(side) <= SOLVE


def test_target_straight_behind_is_reached_in_the_plane_of_the_bend():
    skeleton, pose = arm()
    result = bend(skeleton, pose, (-1.0, -1.0, 0.0))
    assert result.status is CONVERGED
    knee = forward_kinematics(skeleton, result.pose)[2].translation
    assert abs(knee.z) <= FLOAT32


@pytest.mark.parametrize("lengths", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_bones_without_length_aim(lengths):
    skeleton, pose = arm(lengths=lengths)
    reach = sum(lengths)
    for target in ((0.0, 0.0, 2.0), (0.0, -2.0, 0.0), (0.0, 0.0, 0.0)):
        result = bend(skeleton, pose, target, pole=(0.0, 0.0, 1.0))
        wanted = abs(Vector(target).length - reach)
        assert result.errors[0].distance == pytest.approx(wanted, abs=FLOAT32)


def test_pole_at_the_root_joints_head_or_on_the_line_is_ignored():
    skeleton, pose = arm()
    plain = bend(skeleton, pose, (0.5, 0.9, 0.4))
    for pole in ((0.0, 0.0, 0.0), (1.0, 1.8, 0.8), (-0.5, -0.9, -0.4)):
        assert bend(skeleton, pose, (0.5, 0.9, 0.4), pole=pole).pose == plain.pose


@given(
    st.floats(1e-6, 1e4),
    st.floats(1e-6, 1e4),
    st.tuples(*[st.floats(-1e4, 1e4)] * 3),
    st.none() | st.tuples(*[st.floats(-1e4, 1e4)] * 3),
    st.floats(0.0, 1.0),
    st.integers(0, 10**6),
)
def test_two_bones_never_fail(upper, lower, target, pole, soft, seed):
    """Wild sizes, limits, poles: finite, inside limits, the error true and never more than it can be."""
    rng = random.Random(seed)
    skeleton, _ = arm(limits=(random_limit(rng), random_limit(rng)), lengths=(upper, lower))
    goal = PositionGoal("middle", target)
    start = legal_pose(skeleton, rng)
    result = checked(
        skeleton, start, goal, two_bone(skeleton, start, goal, TwoBoneOptions(pole=pole, soft=soft))
    )
    assert result.errors[0].distance <= (Vector(target).length + upper + lower) * (1.0 + FLOAT32)


@given(st.integers(0, 10**6), st.booleans())
def test_two_free_bones_do_the_best_there_is(seed, straightened):
    rng = random.Random(seed)
    upper, lower = rng.uniform(0.1, 3.0), rng.uniform(0.1, 3.0)
    skeleton, _ = arm(lengths=(upper, lower))
    start = Pose.rest(skeleton) if straightened else legal_pose(skeleton, rng)
    target = Vector([rng.uniform(-4.0, 4.0) for _ in range(3)])
    result = bend(skeleton, start, target)
    best = max(target.length - upper - lower, abs(upper - lower) - target.length, 0.0)
    assert result.errors[0].distance == pytest.approx(best, abs=30 * EXACT)


# -- two bones: soft, limits


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


def test_two_bone_refuses_bad_input():
    skeleton, pose = arm()
    goal = PositionGoal("middle", (1.0, 0.0, 0.0))
    for fields, message in (
        ({"soft": 1.5}, "soft must be 0 to 1"),
        ({"soft": math.nan}, "soft must be 0 to 1"),
        ({"weight": math.nan}, "weight must be"),
        ({"pole": (math.nan, 0.0, 0.0)}, "pole must be three finite"),
        ({"pole_angle": math.inf}, "pole_angle is inf"),
    ):
        with pytest.raises(InvalidInput, match=message):
            two_bone(skeleton, pose, goal, TwoBoneOptions(**fields))
    with pytest.raises(InvalidInput, match="'start' has 1 joints that can turn, but 2"):
        two_bone(skeleton, pose, PositionGoal("start", (1.0, 0.0, 0.0)))
    with pytest.raises(InvalidInput, match="1 joints that can turn"):
        two_bone(skeleton, pose, PositionGoal("middle", (1.0, 0.0, 0.0), chain_length=1))
    with pytest.raises(InvalidInput, match="no joint 'hand'"):
        two_bone(skeleton, pose, PositionGoal("hand", (1.0, 0.0, 0.0)))
    with pytest.raises(InvalidInput, match="takes a PositionGoal"):
        two_bone(skeleton, pose, OrientationGoal("middle", Quaternion()))
    with pytest.raises(InvalidInput, match="'middle' does not inherit rotation"):
        two_bone(skeleton.replace({"middle": {"inherit_rotation": False}}), pose, goal)
    with pytest.raises(InvalidInput, match="pose is for"):
        two_bone(skeleton, Pose.rest(straight(2)), goal)


# -- target triangle


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
    with pytest.raises(InvalidInput, match="omega of 'joint1' must be 0 to pi"):
        target_triangle(skeleton, pose, goal, omega={"joint1": math.nan})
    with pytest.raises(InvalidInput, match="no reach window"):
        target_triangle(skeleton, pose, PositionGoal("joint2", (1.0, 0.0, 0.0), max_extension=0.9))
    locked = straight(3, stiffness=1.0)
    with pytest.raises(InvalidInput, match="0 joints that can turn"):
        target_triangle(locked, pose, goal)
    with pytest.raises(InvalidInput, match="takes a PositionGoal"):
        target_triangle(skeleton, pose, OrientationGoal("joint2", Quaternion()))


@pytest.mark.parametrize("solver", [two_bone, target_triangle])
def test_same_input_same_result_to_the_bit(solver):
    rng = random.Random(9)
    skeleton = straight(4, SwingTwist(Cone(1.0), (-0.5, 0.5)))
    pose = legal_pose(skeleton, rng)
    goal = PositionGoal("joint3", (1.0, 2.0, 0.5))
    assert solver(skeleton, pose, goal) == solver(skeleton, pose, goal)
