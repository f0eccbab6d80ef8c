"""Goals that cannot be met together: as near as they get, those served first before the others."""

from __future__ import annotations

import math
import random

import pytest
from chains import legal_pose, random_rotation, straight, tail, tip
from mathutils import Quaternion, Vector

from ccd_rig.goals import Goal, OrientationGoal, PositionGoal
from ccd_rig.limits.shapes import Cone, SwingTwist
from ccd_rig.settings import Solver, SolveResult, SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.many import solve_many
from ccd_rig.solvers.solve import solve

SETTINGS = SolverSettings(restarts=0)


def conflict(seed: int, later: int) -> tuple[SolveResult, SolveResult]:
    """A tip that is to be at one place and to turn another way: both solved, and the place alone."""
    rng = random.Random(seed)
    skeleton = straight(2 + seed % 3)
    start, name = legal_pose(skeleton, rng), tip(skeleton)
    place = PositionGoal(name, [rng.gauss(0.0, 1.0) for _ in range(3)])
    goals: list[Goal] = [place, OrientationGoal(name, random_rotation(rng), priority=later)]
    return solve(skeleton, start, goals, SETTINGS), solve(skeleton, start, [place], SETTINGS)


@pytest.mark.parametrize("seed", range(8))
def test_goals_of_one_priority_end_as_near_as_they_get(seed):
    both, _ = conflict(seed, 0)
    assert both.status in (SolveStatus.OPTIMAL, SolveStatus.CONVERGED)


@pytest.mark.parametrize("seed", [38, 139, 159, 179])  # least squares alone would trade some of it
def test_a_goal_served_first_stays_met(seed):
    both, alone = conflict(seed, 1)
    assert alone.status is SolveStatus.CONVERGED
    assert both.errors[0].distance <= SETTINGS.position_tolerance


@pytest.mark.parametrize("weight", [1e-9, 1e-4, 1e9])
def test_weights_count_among_goals_of_one_priority_alone(weight):
    """Three bones of length 1, the tip is asked for out of reach. A later goal pulls at the first bone."""
    skeleton, far = straight(3), Vector((4.0, 0.5, 0.0))
    goals = [PositionGoal("joint2", far, weight=weight), PositionGoal("joint0", (0.0, 1.0, 5.0), priority=1)]
    result = solve(skeleton, Pose.rest(skeleton), goals, SETTINGS)
    assert result.errors[0].distance == pytest.approx(far.length - 3.0, abs=1e-3)
    assert result.status is SolveStatus.OPTIMAL


def limbs(rng: random.Random) -> Skeleton:
    """A spine of three joints with three limbs of three each, of random lengths, inside cones."""
    joints: list[Joint] = []
    for name in ("spine", "left", "right", "top"):
        for k in range(3):
            parent = len(joints) - 1 if k or name == "spine" else 2
            aside = (0.0, 0.0, 0.0) if k or name == "spine" else (rng.uniform(-0.4, 0.4), 0.0, 0.0)
            offset = Vector(aside) + Vector((0.0, joints[parent].length if joints else 0.0, 0.0))
            limit = SwingTwist(Cone(0.8), (-0.4, 0.4))
            joints.append(Joint(f"{name}{k}", parent, offset, length=rng.uniform(0.3, 1.0), limit=limit))
    return Skeleton(joints)


@pytest.mark.parametrize("restarts", [0, 8])
def test_many_poses_with_room_for_all_goals_meet_them_whatever_their_order(restarts):
    """Along a goal that counts a million times as much steps creep: they stalled at every second pose."""
    met = {0: 0, 1: 0}
    names, settings = ("left2", "right2", "top2"), SolverSettings(restarts=restarts)
    for seed in range(12):
        rng = random.Random(seed)
        skeleton = limbs(rng)
        poses, start = [legal_pose(skeleton, rng) for _ in range(8)], [Pose.rest(skeleton)] * 8
        targets = [[tail(skeleton, pose, name) for pose in poses] for name in names]
        for step in met:
            goals = [PositionGoal(name, (0.0, 0.0, 0.0), priority=step * k) for k, name in enumerate(names)]
            found = solve_many(skeleton, start, goals, settings, targets=targets)
            met[step] += found.statuses.count(SolveStatus.CONVERGED)
    assert met[0] >= 0.9 * 96
    assert met[1] >= 0.95 * met[0]


@pytest.mark.parametrize("far", [(-3.0, 0.2, 0.0), (0.0, -3.0, 0.5)])
def test_sweeps_alone_bring_a_later_goal_near_while_the_first_is_kept(far):
    """The elbow of three bones is nearest to its target where those beyond it are straight: on a circle."""
    skeleton, first, later = straight(3), Vector((1.2, 1.0, 0.3)), Vector(far)
    goals = [PositionGoal("joint2", first), PositionGoal("joint0", later, priority=1)]
    # On the sphere |e| = 1 about the root, and on |e - first| = 2.
    along = (1.0 + first.length_squared - 4.0) / (2.0 * first.length)
    axis = first.normalized()
    aside = (later - later.dot(axis) * axis).length
    nearest = math.hypot(later.dot(axis) - along, aside - math.sqrt(1.0 - along * along))
    bent_pose = Pose.rest(skeleton).with_rotations(
        {i: Quaternion((1.0, 0.1, 0.05, 0.1 * i)).normalized() for i in range(3)}
    )
    settings = SolverSettings(solver=Solver.CCD, restarts=0)
    result = solve(skeleton, bent_pose, goals, settings)
    assert result.errors[0].distance <= settings.position_tolerance
    assert nearest - 1e-3 <= result.errors[1].distance <= 1.08 * nearest


@pytest.mark.parametrize("solver", list(Solver))
def test_a_later_goal_that_is_given_up_early_is_not_called_as_near_as_it_gets(solver):
    """The first goal is met all along; the other arm has one iteration for a long way."""
    arms = [Joint("body", stiffness=1.0)]
    for side, sign in (("L", 1.0), ("R", -1.0)):
        for k in range(4):
            offset = (sign, 1.0, 0.0) if k == 0 else (0.0, 1.0, 0.0)
            arms.append(Joint(f"{side}{k}", len(arms) - 1 if k else 0, offset))
    skeleton = Skeleton(arms)
    rest = Pose.rest(skeleton)
    heads = {
        joint.name: each.translation
        for joint, each in zip(arms, forward_kinematics(skeleton, rest), strict=True)
    }
    goals = [PositionGoal("L3", heads["L3"]), PositionGoal("R3", (-1.0, -1.5, 0.3), priority=1)]
    hurried = SolverSettings(solver=solver, restarts=0, max_iterations=1)
    assert solve(skeleton, rest, goals, hurried).status not in (SolveStatus.OPTIMAL, SolveStatus.CONVERGED)
    assert solve(skeleton, rest, goals, SETTINGS).status is SolveStatus.CONVERGED
