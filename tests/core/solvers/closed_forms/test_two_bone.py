"""Two bones by the law of cosines: places, poles and what is degenerate."""

from __future__ import annotations

import math
import random

import pytest
from arms import CONVERGED, STALLED, X, Y, arm, bend, checked
from chains import EXACT, FLOAT32, SOLVE, Z, legal_pose, random_limit, random_rotation, straight
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import OrientationGoal, PositionGoal
from ccd_rig.limits.shapes import Cone, Hinge, SwingTwist
from ccd_rig.maths.rotations import angle_between
from ccd_rig.skeleton.joints import CoupledOffset, Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.closed_forms import TwoBoneOptions, eased_target, target_triangle, two_bone

OZZ_ROTATION = 2e-3  # the tolerances of ozz-animation's own tests: rotations,
OZZ_REACH = 1e-2  # and the distance to the target
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


@pytest.mark.parametrize("soft", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("angle", [0.0, 0.02, 0.3, 1.0, 2.5])
def test_an_eased_target_leaves_the_limb_where_it_is(soft, angle):
    """Also about straight, where the target is as far off as tells the difference."""
    skeleton, pose = arm()
    pose = pose.with_rotations({1: Quaternion(Z, -0.5 * angle) @ pose.rotations[1], 2: Quaternion(Z, -angle)})
    end = forward_kinematics(skeleton, pose)[2].point(Vector((0.0, 1.0, 0.0)))
    goal = PositionGoal(skeleton.joints[2].name, Vector((9.0, 9.0, 9.0)))
    target = eased_target(skeleton, pose, goal, soft)
    root = forward_kinematics(skeleton, pose)[1].translation
    reach, length = (end - root).length, 2.0
    if soft == 0.0 or reach <= length * (1.0 - soft):
        assert (target - end).length < EXACT
    else:
        assert (target - root).length > reach
    result = bend(skeleton, pose, target, soft=soft)
    after = forward_kinematics(skeleton, result.pose)[2].point(Vector((0.0, 1.0, 0.0)))
    assert (after - end).length < 10.0 * FLOAT32


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


@pytest.mark.parametrize("size", [2.0**-14, 2.0**14])
def test_the_unit_of_lengths_makes_no_difference_to_two_bones(size):
    rng = random.Random(7)
    for _ in range(40):
        lengths = rng.uniform(0.2, 2.0), rng.uniform(0.2, 2.0)
        target = Vector([rng.uniform(-2.0, 2.0) for _ in range(3)])
        poles = rng.choice((None, Vector([rng.uniform(-2.0, 2.0) for _ in range(3)])))
        start = legal_pose(arm()[0], rng)
        results = []
        for unit in (1.0, size):
            skeleton = arm(lengths=(unit * lengths[0], unit * lengths[1]))[0]
            options = TwoBoneOptions(pole=None if poles is None else unit * poles)
            goal = PositionGoal("middle", unit * target)
            results.append(two_bone(skeleton, start, goal, options, position_tolerance=1e-4 * unit))
        assert results[0].pose.rotations == results[1].pose.rotations
        assert results[0].status is results[1].status


def test_bones_that_a_posed_hinge_has_shifted():
    """Bones stand on a locked one, which the angle of a locked hinge has shifted."""
    skeleton = Skeleton(
        [
            Joint("root", limit=Hinge(Z, -1.0, 1.0), stiffness=1.0),
            Joint(
                "shifted",
                0,
                stiffness=1.0,
                coupled_offsets=(CoupledOffset("root", (0.0, 1.0, 0.0), (-1.0, 1.0), (-0.5, 0.5)),),
            ),
            Joint("start", 1),
            Joint("middle", 2, (0.0, 1.0, 0.0)),
        ]
    )
    pose = Pose.rest(skeleton).with_rotations({0: Quaternion(Z, 0.6), 3: Quaternion(Z, -1.0)})
    for target in ((0.7, 1.5, 0.2), (-1.2, 0.8, 1.0), (0.1, -1.2, 0.3)):
        assert bend(skeleton, pose, target).status is CONVERGED


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


def test_two_bone_refuses_bad_input():
    skeleton, pose = arm()
    goal = PositionGoal("middle", (1.0, 0.0, 0.0))
    for fields, message in (
        ({"soft": 1.5}, "soft must be 0 to 1"),
        ({"soft": math.nan}, "soft is nan"),
        ({"weight": math.nan}, "weight is nan"),
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


@pytest.mark.parametrize("solver", [two_bone, target_triangle])
def test_same_input_same_result_to_the_bit(solver):
    rng = random.Random(9)
    skeleton = straight(4, SwingTwist(Cone(1.0), (-0.5, 0.5)))
    pose = legal_pose(skeleton, rng)
    goal = PositionGoal("joint3", (1.0, 2.0, 0.5))
    assert solver(skeleton, pose, goal) == solver(skeleton, pose, goal)
