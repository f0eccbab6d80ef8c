"""Reach windows, slides, and how far a step goes: what they do to joints beside the goal."""

from __future__ import annotations

import random
from math import acos

import pytest
from chains import EXACT, FLOAT32, Z, legal_pose, straight, tail
from goal_solves import CONVERGED, OPTIMAL, meet
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Cone, Slide, SwingTwist
from ccd_rig.settings import SolverSettings, Sweep
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import solve


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


def test_what_a_window_keeps_out_of_reach_is_the_nearest_pose_to_the_reference():
    """As near to it as a pose is whose target lies just where the window ends."""
    rng = random.Random(5)
    skeleton = straight(6)
    bent = Pose.rest(skeleton).with_rotations({i: Quaternion(Z, 0.35 * (-1) ** i) for i in range(6)})
    for _ in range(20):
        way = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        goal = PositionGoal("joint5", rng.uniform(5.5, 8.0) * way, max_extension=0.9)
        settings = SolverSettings()
        kept = solve(skeleton, bent, [goal], settings, reference=bent)
        met = solve(skeleton, bent, [PositionGoal("joint5", 5.4 * way)], settings, reference=bent)
        assert (kept.status, met.status) == (OPTIMAL, CONVERGED)
        assert (tail(skeleton, kept.pose) - 5.4 * way).length < 5e-3
        far, near = (
            sum(
                (2.0 * acos(min(1.0, abs(a.dot(b))))) ** 2
                for a, b in zip(result.pose.rotations, bent.rotations, strict=True)
            )
            for result in (kept, met)
        )
        assert far <= 1.01 * near
