"""Goals of every kind: what they measure, that solves meet them, alone and mixed, inside limits."""

from __future__ import annotations

import math
import random

import pytest
from chains import EXACT, FLOAT32, SOLVE, Z, legal_pose, random_skeleton, straight, tail, tip
from hypothesis import given, settings
from hypothesis import strategies as st
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
    centre_of_mass,
    measure,
)
from ccd_rig.limits.shapes import Cone, Hinge, Slide, SwingTwist, violation
from ccd_rig.settings import SolverSettings, SolveStatus, Sweep
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import solve

CONVERGED, OPTIMAL = SolveStatus.CONVERGED, SolveStatus.OPTIMAL
UP = Vector((0.0, 0.0, 1.0))


def meet(skeleton, goals, start=None, **fields):
    """Solves, and holds errors and status against forward kinematics."""
    fields.setdefault("position_tolerance", SOLVE)
    fields.setdefault("angle_tolerance", SOLVE)
    chosen = SolverSettings(**fields)
    result = solve(skeleton, start or Pose.rest(skeleton), goals, chosen)
    transforms = forward_kinematics(skeleton, result.pose)
    assert result.errors == tuple(measure(goal, skeleton, transforms) for goal in goals)
    met = all(
        e.distance <= chosen.position_tolerance and e.angle <= chosen.angle_tolerance for e in result.errors
    )
    assert met == (result.status is CONVERGED)
    for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
        assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
    return result


def frame_of(skeleton, pose, name):
    return forward_kinematics(skeleton, pose)[skeleton.index(name)].rotation


def test_full_pose_of_a_free_chain():
    rng = random.Random(1)
    skeleton = straight(5)
    for _ in range(60):
        pose = legal_pose(skeleton, rng)
        goals = [
            PositionGoal("joint4", tail(skeleton, pose)),
            OrientationGoal("joint4", frame_of(skeleton, pose, "joint4")),
        ]
        assert meet(skeleton, goals).status is CONVERGED


def test_zalo_arm_touches_points_from_any_direction():
    """Five degrees of freedom: a turning base, three elbows and a wrist; the point and the direction of the
    last bone."""
    y, x = Vector((0.0, 1.0, 0.0)), Vector((1.0, 0.0, 0.0))
    limits = [
        Hinge(y, -3.0, 3.0),
        Hinge(x, -1.6, 1.6),
        Hinge(x, -2.4, 2.4),
        Hinge(x, -2.4, 2.4),
        Hinge(y, -3.0, 3.0),
    ]
    joints = [
        Joint(f"joint{i}", i - 1, (0.0, 1.0 if i else 0.0, 0.0), limit=limit)
        for i, limit in enumerate(limits)
    ]
    joints.append(Joint("hand", 4, (0.0, 1.0, 0.0), length=0.5, limit=Hinge(x, -1.6, 1.6)))
    skeleton = Skeleton(joints)
    rng = random.Random(2)
    missed = 0
    for _ in range(100):
        pose = legal_pose(skeleton, rng)
        pointing = frame_of(skeleton, pose, "hand") @ y
        goals = [PositionGoal("hand", tail(skeleton, pose)), DirectionGoal("hand", y, pointing)]
        missed += meet(skeleton, goals, position_tolerance=1e-2, angle_tolerance=1e-2).status is not CONVERGED
    assert missed <= 30  # local minima at limits are left to restarts


def test_direction_alone():
    skeleton = straight(3)
    result = meet(skeleton, [DirectionGoal("joint2", (0.0, 2.0, 0.0), (0.0, 0.0, -5.0))])
    assert result.status is CONVERGED
    assert (frame_of(skeleton, result.pose, "joint2") @ Vector((0.0, 1.0, 0.0)) + UP).length < 2e-3


@pytest.mark.parametrize("error_reduction", [0.0, 0.95])
def test_a_bone_that_points_somewhere_does_not_spin(error_reduction):
    """What the way to the target and the direction say of the turn about them is next to nothing."""
    skeleton, settings = straight(20), {"error_reduction": error_reduction, "position_tolerance": SOLVE}
    pose, worst = Pose.rest(skeleton), 0.0
    for frame in range(60):
        a = math.tau * frame / 250
        target = Vector((9.0 * math.cos(a), 11.0 + 2.0 * math.sin(3.0 * a), 9.0 * math.sin(a)))
        end = tip(skeleton)
        goals = [PositionGoal(end, target), DirectionGoal(end, (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
        result = meet(skeleton, goals, pose, **settings)
        assert result.status is CONVERGED
        pairs = zip(pose.rotations, result.pose.rotations, strict=True)
        turns = (a.rotation_difference(b).angle for a, b in pairs)
        if frame > 0:
            worst = max(worst, max(min(turn, math.tau - turn) for turn in turns))
        pose = result.pose
    assert worst <= math.radians(4.0)


@pytest.mark.parametrize("pole", [(5.0, 0.0, 0.0), (-5.0, 1.0, 0.0), (0.0, 0.0, 5.0), (1.0, 3.0, -4.0)])
def test_pole_turns_the_bend_without_losing_the_target(pole):
    skeleton = straight(2)
    goals = [PositionGoal("joint1", (0.0, 1.5, 0.3)), PoleGoal("joint0", "joint1", pole)]
    assert meet(skeleton, goals).status is CONVERGED


def test_pole_never_breaks_a_limit():
    knee = Hinge((1.0, 0.0, 0.0), 0.05, 2.5)
    hip = SwingTwist(Cone(1.0), (-0.4, 0.4))
    skeleton = straight(2).replace({"joint0": {"limit": hip}, "joint1": {"limit": knee}})
    rng = random.Random(3)
    for _ in range(40):
        target = tail(skeleton, legal_pose(skeleton, rng))
        pole = [rng.uniform(-5.0, 5.0) for _ in range(3)]
        plain = meet(skeleton, [PositionGoal("joint1", target)])
        both = meet(
            skeleton, [PositionGoal("joint1", target), PoleGoal("joint0", "joint1", pole, priority=1)]
        )
        assert both.errors[0].distance <= max(plain.errors[0].distance, SOLVE) + 0.1 * SOLVE


def test_pole_on_the_line_or_a_straight_chain_asks_for_nothing():
    skeleton = straight(3)
    rest = forward_kinematics(skeleton, Pose.rest(skeleton))
    assert measure(PoleGoal("joint0", "joint2", (1.0, 0.0, 0.0)), skeleton, rest).angle == 0.0
    bent = Pose.rest(skeleton).with_rotations({1: Quaternion(Z, 1.0)})
    on_line = tail(skeleton, bent) * 3.0
    assert (
        measure(PoleGoal("joint0", "joint2", on_line), skeleton, forward_kinematics(skeleton, bent)).angle
        == 0.0
    )
    assert meet(
        skeleton, [PositionGoal("joint2", (0.0, 2.0, 1.0)), PoleGoal("joint0", "joint2", (0.0, 4.0, 2.0))]
    )


def walker() -> Skeleton:
    """A base with a heavy swaying stack on it and two arms with mass."""
    joints = [
        Joint(
            "base",
            mass=0.0,
            stiffness=1.0,
            length=0.5,
            rest_rotation=Quaternion((1.0, 0.0, 0.0), math.pi / 2),
        ),
        Joint("spine0", 0, (0, 0.5, 0), mass=5.0, limit=SwingTwist(Cone(0.8), (-0.5, 0.5))),
        Joint("spine1", 1, (0, 1, 0), mass=5.0, limit=SwingTwist(Cone(0.8), (-0.5, 0.5))),
    ]
    for side in (-1, 1):
        name = "left" if side < 0 else "right"
        turned = Quaternion(Z, side * math.pi / 2)
        joints.append(Joint(f"{name}_upper", 2, (0, 1, 0), turned, mass=1.0))
        joints.append(Joint(f"{name}_lower", len(joints) - 1, (0, 1, 0), mass=1.0))
    return Skeleton(joints)


def test_balance_over_a_point_while_a_hand_reaches():
    skeleton = walker()
    rest = forward_kinematics(skeleton, Pose.rest(skeleton))
    assert centre_of_mass(skeleton, rest).z > 0.5
    hand = PositionGoal("right_lower", (-0.6, 0.9, 1.9))
    alone = meet(skeleton, [hand])
    off = measure(BalanceGoal((0.0, 0.0, 0.0)), skeleton, forward_kinematics(skeleton, alone.pose)).distance
    both = meet(skeleton, [hand, BalanceGoal((0.0, 0.0, 0.0), weight=2.0)])
    assert off > 0.02
    assert both.status is CONVERGED


def test_balance_over_a_line_leaves_the_other_axis_free():
    skeleton = walker()
    goal = BalanceGoal((0.3, 9.0, 9.0), axes=(True, False, False))
    result = meet(skeleton, [goal])
    assert result.status is CONVERGED
    assert abs(centre_of_mass(skeleton, forward_kinematics(skeleton, result.pose)).x - 0.3) < 2e-3


def test_balance_by_some_joints_leaves_the_others_as_they_are():
    """Two arms on a trunk: only the left one swings to bring the centre of mass over."""
    skeleton = Skeleton(
        [
            Joint("trunk", mass=1.0),
            Joint("left", 0, (0, 1, 0), mass=1.0),
            Joint("hand", 1, (0, 1, 0), mass=1.0),
            Joint("right", 0, (0, 1, 0), mass=1.0),
        ]
    )
    rest = Pose.rest(skeleton)
    for length, moved in ((0, {0, 1, 2}), (2, {1, 2}), (1, {2})):
        goal = BalanceGoal((0.1, 0.0, 0.0), (True, False, False), joint="hand", chain_length=length)
        result = solve(skeleton, rest, [goal])
        assert result.status is CONVERGED and result.errors[0].distance <= 1e-4
        turned = {i for i in range(4) if result.pose.rotations[i] != rest.rotations[i]}
        assert turned and turned <= moved
    with pytest.raises(InvalidInput, match="no joint 'foot'"):
        solve(skeleton, rest, [BalanceGoal((0, 0, 0), joint="foot")])
    with pytest.raises(InvalidInput, match=r"chain_length.*name it"):
        BalanceGoal((0, 0, 0), chain_length=2)


def test_balance_carried_along_equals_the_rebuilt_one():
    """What a view carries is what forward kinematics gives, also past joints that do not inherit rotation."""
    from ccd_rig.solvers.ccd.working_pose import WorkingPose

    rng = random.Random(8)
    for _ in range(30):
        skeleton = random_skeleton(rng, 8, tree=True)
        skeleton = skeleton.replace(
            {j.name: {"mass": rng.uniform(0.0, 2.0), "stiffness": 0.0} for j in skeleton.joints}
        )
        goals = [BalanceGoal((0.0, 0.0, 0.0)), PositionGoal(tip(skeleton), (1.0, 2.0, 3.0))]
        goals.append(OrientationGoal(tip(skeleton), Quaternion(Z, 1.0)))
        working = WorkingPose(skeleton, legal_pose(skeleton, rng), goals)
        working.set_limits([joint.limit for joint in skeleton.joints], [0.0] * 8)
        for i in rng.choices(working.movable, k=12):
            working.step(i, 1.0)
        carried = [effector.error() for effector in working.effectors]
        working.recompute()
        for before, after in zip(carried, (effector.error() for effector in working.effectors), strict=True):
            assert before.distance == pytest.approx(after.distance, abs=1e-4)
            assert before.angle == pytest.approx(after.angle, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_every_unlimited_step_lowers_the_error_of_any_mixture(seed):
    """The exact best move: no step of a free joint may raise the sum over its goals."""
    from ccd_rig.solvers.ccd.working_pose import WorkingPose

    rng = random.Random(seed)
    skeleton = straight(5, mass=1.0)
    start = legal_pose(skeleton, rng)
    goals = [PositionGoal("joint4", [rng.uniform(-4.0, 4.0) for _ in range(3)], weight=rng.uniform(0.1, 3.0))]
    if rng.random() < 0.7:
        goals.append(
            OrientationGoal("joint3", legal_pose(skeleton, rng).rotations[0], weight=rng.uniform(0.1, 3.0))
        )
    if rng.random() < 0.7:
        goals.append(DirectionGoal("joint2", (1.0, 0.0, 0.0), (0.0, 1.0, 1.0)))
    if rng.random() < 0.7:
        goals.append(
            BalanceGoal((0.5, 0.5, 0.0), axes=rng.choice(((True, True, False), (True, False, False))))
        )
    working = WorkingPose(skeleton, start, goals)
    working.set_limits([None] * 5, [0.0] * 5)
    for _ in range(3):
        for i in range(5):
            before = working.square()
            working.step(i, 1.0)
            assert working.square() <= before + 1e-4 * (1.0 + before)


def test_priorities_keep_what_is_served_first():
    """Two arms on one spine pull to opposite sides: equal weights share the miss, priorities do not."""
    joints = [Joint("spine0"), Joint("spine1", 0, (0, 1, 0))]
    for name in ("left", "right"):
        joints.append(Joint(f"{name}0", 1, (0, 1, 0)))
        joints.append(Joint(f"{name}1", len(joints) - 1, (0, 1, 0)))
    skeleton = Skeleton(joints)
    left, right = (-3.4, 1.0, 0.0), (3.4, 1.0, 0.0)
    equal = meet(skeleton, [PositionGoal("left1", left), PositionGoal("right1", right)])
    assert abs(equal.errors[0].distance - equal.errors[1].distance) < 0.1
    for first in ("left", "right"):
        goals = [
            PositionGoal("left1", left, priority=int(first != "left")),
            PositionGoal("right1", right, priority=int(first != "right")),
        ]
        served = meet(skeleton, goals)
        high, low = (0, 1) if first == "left" else (1, 0)
        assert served.errors[high].distance <= SOLVE
        assert served.errors[low].distance > 1.0
        alone = meet(skeleton, [goals[high]])
        transforms = forward_kinematics(skeleton, alone.pose)
        assert served.errors[low].distance <= measure(goals[low], skeleton, transforms).distance + SOLVE


def test_priorities_with_room_for_all_meet_all():
    rng = random.Random(4)
    joints = [Joint("spine0"), Joint("spine1", 0, (0, 1, 0))]
    for name in ("left", "right"):
        for i in range(3):
            joints.append(Joint(f"{name}{i}", 1 if i == 0 else len(joints) - 1, (0, 1, 0)))
    skeleton = Skeleton(joints)
    for _ in range(30):
        pose = legal_pose(skeleton, rng)
        goals = [
            PositionGoal(f"{n}2", tail(skeleton, pose, f"{n}2"), priority=p)
            for p, n in enumerate(("left", "right"))
        ]
        assert meet(skeleton, goals).status is CONVERGED


def test_reach_window_passes_the_rest_on_to_the_next_joint_up():
    """The arm of the last two joints never stretches past 90 % of its length; the shoulder and spine do the
    rest."""
    skeleton = straight(4)
    bent = Pose.rest(skeleton).with_rotations({2: Quaternion(Z, 0.7), 3: Quaternion(Z, 1.2)})
    target = (0.5, 3.2, 0.3)
    goal = PositionGoal("joint3", target, max_extension=0.9, extension_joints=2)
    for start in (bent, Pose.rest(skeleton)):
        result = meet(skeleton, [goal], start)
        transforms = forward_kinematics(skeleton, result.pose)
        stretched = (tail(skeleton, result.pose) - transforms[2].translation).length
        assert stretched <= 1.8 + 1e-4
        assert result.status is CONVERGED
    free = meet(skeleton, [PositionGoal("joint3", (0.0, 3.95, 0.0))], bent)
    assert free.status is CONVERGED
    windowed = meet(
        skeleton, [PositionGoal("joint3", (0.0, 3.95, 0.0), max_extension=0.9, extension_joints=2)], bent
    )
    assert windowed.status is OPTIMAL


def test_no_solve_stretches_past_a_reach_window():
    rng = random.Random(14)
    for _ in range(120):
        limit = rng.choice((None, SwingTwist(Cone(1.6)), Hinge(Z, -2.0, 2.0)))
        skeleton = straight(6, limit)
        bones = rng.choice((0, 2, 3))
        bent = Pose.rest(skeleton).with_rotations({i: Quaternion(Z, 0.9 * (-1) ** i) for i in range(6)})
        target = [rng.uniform(-6.0, 6.0) for _ in range(3)]
        goal = PositionGoal("joint5", target, max_extension=0.8, extension_joints=bones)
        fields = {
            "error_reduction": rng.choice((0.0, 0.95)),
            "sweep": rng.choice(list(Sweep)),
            "max_iterations": 60,
        }
        result = meet(skeleton, [goal], bent, **fields)
        transforms = forward_kinematics(skeleton, result.pose)
        first = 6 - bones if bones else 0
        longest = 0.8 * (bones or 6)
        assert (tail(skeleton, result.pose) - transforms[first].translation).length <= longest + 1e-4


def test_slide_joint_moves_along_its_axis_inside_its_range():
    rail = Joint("rail", slides=(Slide((1.0, 0.0, 0.0), -2.0, 2.0),), limit=SwingTwist(Cone(0.0), (0.0, 0.0)))
    skeleton = Skeleton([rail, Joint("arm", 0, (0.0, 1.0, 0.0))])
    result = meet(skeleton, [PositionGoal("arm", (1.5, 1.2, 0.6))])
    assert result.status is CONVERGED
    assert abs(result.pose.translations[0].x) <= 2.0 + FLOAT32
    assert result.pose.translations[0].yz == Vector((0.0, 0.0))
    far = meet(skeleton, [PositionGoal("arm", (9.0, 1.0, 0.0))])
    assert far.status is OPTIMAL
    assert far.pose.translations[0].x == pytest.approx(2.0, abs=EXACT)


def test_error_feedback_takes_overshoot_back_near_the_target():
    rng = random.Random(6)
    skeleton = straight(6)
    plain = fed = 0
    for _ in range(60):
        goals = [PositionGoal("joint5", tail(skeleton, legal_pose(skeleton, rng)))]
        plain += meet(skeleton, goals, step_fraction=1.3).iterations
        fed += meet(skeleton, goals, step_fraction=1.3, step_feedback=1.0).iterations
    assert fed < plain


def test_smart_bounce_leaves_far_joints_still_where_near_ones_suffice():
    """The five-joint arm of Kenwright's figures 9 and 10."""
    skeleton = straight(5)
    start = Pose.rest(skeleton).with_rotations({3: Quaternion(Z, 0.6), 4: Quaternion(Z, 0.9)})
    target = tail(skeleton, start) + Vector((0.25, -0.1, 0.05))
    motion = {}
    for sweep in (Sweep.SMART_BOUNCE, Sweep.TIP_TO_ROOT, Sweep.ROOT_TO_TIP):
        result = meet(skeleton, [PositionGoal("joint4", target)], start, sweep=sweep, step_fraction=1.0)
        assert result.status is CONVERGED
        motion[sweep] = [
            a.rotation_difference(b).angle
            for a, b in zip(start.rotations, result.pose.rotations, strict=True)
        ]
    assert max(motion[Sweep.SMART_BOUNCE][:3]) < 2e-3
    assert max(motion[Sweep.TIP_TO_ROOT][:3]) > 1e-2
    assert max(motion[Sweep.ROOT_TO_TIP][:3]) > 1e-2


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: OrientationGoal("hand", (2.0, 0.0, 0.0, 0.0)), "hand.*unit quaternion"),
        (lambda: OrientationGoal("hand", (1.0, 0.0, 0.0, 0.0), priority=-1), "hand.*priority"),
        (lambda: PositionGoal("hand", (0, 0, 0), priority=0.5), "hand.*priority"),
        (lambda: DirectionGoal("hand", (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)), "hand.*axis"),
        (lambda: DirectionGoal("hand", (0.0, 1.0, 0.0), (math.nan, 1.0, 0.0)), "hand.*target"),
        (lambda: PoleGoal("hip", "foot", (math.inf, 0.0, 0.0)), "hip.*foot.*target"),
        (lambda: PoleGoal("hip", "foot", (1.0, 0.0, 0.0), angle=math.nan), "hip.*foot.*angle"),
        (lambda: PoleGoal("hip", "foot", (1.0, 0.0, 0.0), offset=(math.nan, 0.0, 0.0)), "hip.*foot.*offset"),
        (lambda: BalanceGoal((0, 0, 0), axes=(False, False, False)), "axes"),
        (lambda: PositionGoal("hand", (0, 0, 0), max_extension=0.0), "hand.*max_extension"),
        (lambda: PositionGoal("hand", (0, 0, 0), chain_length=-1), "hand.*chain_length"),
    ],
)
def test_goals_refuse_what_makes_no_sense(make, named):
    with pytest.raises(InvalidInput, match=named):
        make()


def test_pole_and_balance_name_what_is_missing():
    skeleton = straight(2)
    rest = Pose.rest(skeleton)
    with pytest.raises(InvalidInput, match=r"joint1.*above.*joint0"):
        solve(skeleton, rest, [PoleGoal("joint1", "joint0", (1, 0, 0))])
    with pytest.raises(InvalidInput, match="mass"):
        solve(skeleton, rest, [BalanceGoal((0, 0, 0))])
