"""CCD near a reference pose: the goals are met, and joints stay as near to it as they can."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_skeleton, straight, tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import OrientationGoal, PoleGoal, PositionGoal
from ccd_rig.limits.shapes import Cone, Hinge, Slide, SwingTwist, violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import Solver, SolverSettings, SolveStatus, Sweep
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.ccd.reference_passes import passes_near_reference
from ccd_rig.solvers.ccd.working_pose import WorkingPose
from ccd_rig.solvers.many import solve_many
from ccd_rig.solvers.solve import iterate, solve

CCD = SolverSettings(solver=Solver.CCD, restarts=0)


def wave(count: int, time: float) -> Pose:
    """A wave that runs along a chain."""
    size = 6.0 / count
    bends = [
        (size * math.sin(time - 9.0 * i / count), 0.6 * size * math.cos(1.5 * time)) for i in range(count)
    ]
    return Pose(
        tuple(Quaternion((1.0, 0.5 * x, 0.0, 0.5 * z)).normalized() for x, z in bends),
        tuple(Vector() for _ in bends),
    )


def departure(pose: Pose, reference: Pose) -> float:
    """Root of the sum of squared angles, radians."""
    angles = map(angle_between, pose.rotations, reference.rotations)
    return math.sqrt(sum(angle * angle for angle in angles))


def departed(reference: Pose, before: Pose, solved: Pose) -> Pose:
    return reference.with_rotations(
        {
            i: (reference.rotations[i] @ (a.conjugated() @ b)).normalized()
            for i, (a, b) in enumerate(zip(before.rotations, solved.rotations, strict=True))
        }
    )


@pytest.mark.parametrize("sweep", list(Sweep))
def test_the_nearest_pose_to_a_moving_reference(sweep):
    """Beside the nearest pose that least squares find, frame by frame from the departure before."""
    skeleton, settings = straight(8), replace(CCD, sweep=sweep)
    before = solved = None
    ours, theirs = [], []
    for frame in range(25):
        reference = wave(8, 0.15 * frame)
        goal = PositionGoal("joint7", tail(skeleton, reference) + Vector((0.0, 0.0, 0.24)))
        start = reference if solved is None else departed(reference, before, solved)
        result = solve(skeleton, start, [goal], settings, reference=reference)
        assert result.status is SolveStatus.CONVERGED
        before, solved = reference, result.pose
        ours.append(departure(solved, reference))
        best = solve_many(skeleton, [reference], [goal], SolverSettings(restarts=0), reference=[reference])
        theirs.append(departure(best.pose(0), reference))
    assert np.mean(ours) <= 1.2 * np.mean(theirs)


def test_a_reference_pose_that_meets_the_goals_is_returned():
    rng = random.Random(3)
    for _ in range(20):
        skeleton = random_skeleton(rng, 6)
        free = {"stiffness": 0.0, "max_step": math.pi}
        skeleton = skeleton.replace({joint.name: free for joint in skeleton.joints})
        reference = legal_pose(skeleton, rng)
        goal = PositionGoal("joint5", tail(skeleton, reference))
        start = legal_pose(skeleton, rng)
        result = solve(skeleton, start, [goal], CCD, reference=reference)
        assert result.status is SolveStatus.CONVERGED and result.iterations == 0
        assert max(map(angle_between, result.pose.rotations, reference.rotations)) <= FLOAT32


def test_where_a_solve_starts_does_not_matter():
    """The loop of a target closes: the pose depends on the target, not on the way there."""
    skeleton, reference = straight(6), wave(6, 0.5)
    goal = PositionGoal("joint5", Vector((2.0, 3.0, 1.0)))
    rng = random.Random(1)
    near = solve(skeleton, reference, [goal], CCD, reference=reference).pose
    for _ in range(5):
        start = Pose(
            tuple(
                (q @ Quaternion((1.0, *(rng.gauss(0.0, 0.05) for _ in range(3))))).normalized()
                for q in near.rotations
            ),
            near.translations,
        )
        found = solve(skeleton, start, [goal], CCD, reference=reference).pose
        assert max(map(angle_between, found.rotations, near.rotations)) < math.radians(2.0)


def test_goals_of_every_kind_are_met_within_limits():
    elbow, wrist = Hinge((1.0, 0.0, 0.0), 0.0, 2.6), SwingTwist(Cone(0.8), (-1.0, 1.0))
    arm = Skeleton(
        [
            Joint("upper", -1, (0.0, 0.0, 0.0), length=1.0),
            Joint("fore", 0, (0.0, 1.0, 0.0), length=1.0, limit=elbow),
            Joint("hand", 1, (0.0, 1.0, 0.0), length=0.3, limit=wrist),
        ]
    )
    reference = Pose.rest(arm).with_rotations({1: Quaternion((1.0, 0.0, 0.0), 0.9)})
    reached = reference.with_rotations(
        {
            0: Quaternion((0.0, 0.0, 1.0), 0.2),
            1: Quaternion((1.0, 0.0, 0.0), 1.2),
            2: Quaternion((0.0, 0.0, 1.0), 0.3),
        }
    )
    at = forward_kinematics(arm, reached)[2]
    goals = [PositionGoal("hand", tail(arm, reached)), OrientationGoal("hand", at.rotation)]
    result = solve(arm, reference, goals, CCD, reference=reference)
    assert result.status is SolveStatus.CONVERGED
    for joint, rotation in zip(arm.joints, result.pose.rotations, strict=True):
        assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
    assert departure(result.pose, reference) <= 1.1 * departure(reached, reference)


def test_a_slide_goes_back_to_its_reference():
    skeleton = straight(3).replace({"joint1": {"slides": (Slide((0.0, 1.0, 0.0), -0.5, 0.5),)}})
    reference = Pose.rest(skeleton).with_rotations({1: Quaternion((1.0, 0.0, 0.0), 0.8)})
    start = Pose(reference.rotations, (Vector(), Vector((0.0, 0.4, 0.0)), Vector()))
    goal = PositionGoal("joint2", tail(skeleton, reference) + Vector((0.0, 0.05, 0.05)))
    result = solve(skeleton, start, [goal], CCD, reference=reference)
    assert result.status is SolveStatus.CONVERGED
    assert abs(result.pose.translations[1].y) < 0.1


def test_out_of_reach_the_chain_is_straight_whatever_pose_came_before():
    skeleton, reference = straight(5), wave(5, 0.3)
    goal = PositionGoal("joint4", Vector((3.0, 8.0, 0.0)))
    rng = random.Random(2)
    ends = [
        solve(skeleton, start, [goal], CCD, reference=reference)
        for start in (reference, legal_pose(skeleton, rng))
    ]
    assert ends[0].pose == ends[1].pose
    assert ends[0].errors[0].distance == pytest.approx(math.hypot(3.0, 8.0) - 5.0, abs=1e-3)


def test_iterate_ends_where_solve_does_and_counts_the_passes():
    skeleton, reference = straight(5), wave(5, 0.3)
    goal = PositionGoal("joint4", tail(skeleton, reference) + Vector((0.3, 0.0, 0.2)))
    result = solve(skeleton, Pose.rest(skeleton), [goal], CCD, reference=reference)
    items = list(iterate(skeleton, Pose.rest(skeleton), [goal], CCD, reference=reference))
    assert items[-1] == result
    assert [item.iterations for item in items] == sorted(item.iterations for item in items)
    few = replace(CCD, max_iterations=3)
    assert solve(skeleton, Pose.rest(skeleton), [goal], few, reference=reference).iterations <= 3


def test_goals_aim_at_their_targets_again_when_the_passes_are_left():
    skeleton, reference = straight(5), wave(5, 0.3)
    goals = [
        PositionGoal("joint4", Vector((2.0, 2.0, 0.0))),
        PoleGoal("joint0", "joint4", Vector((0.0, 0.0, 5.0))),
    ]
    working = WorkingPose(skeleton, Pose.rest(skeleton), goals, reference)
    passes = passes_near_reference(working, Sweep.ROOT_TO_TIP, [0, 1])
    for _ in range(25):
        next(passes, None)
    assert any(effector.multipliers for effector in working.effectors)
    passes.close()
    assert not any(effector.multipliers for effector in working.effectors)
