"""Goals of every kind: what they measure, that solves meet them, alone and mixed, inside limits."""

from __future__ import annotations

import math
import random

import pytest
from chains import SOLVE, Z, legal_pose, straight, tail, tip
from goal_solves import CONVERGED, UP, frame_of, meet
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
)
from ccd_rig.limits.shapes import Cone, Hinge, SwingTwist
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve


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
