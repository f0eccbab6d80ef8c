"""Whole passes in one loop make the moves that single steps make; what their errors are measured against."""

from __future__ import annotations

import random

import pytest
from chains import FLOAT32, legal_pose, random_skeleton, straight, tail

from ccd_rig.goals import OrientationGoal, PositionGoal
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.ccd import passes
from ccd_rig.solvers.ccd.chain_length import length_scale
from ccd_rig.solvers.ccd.working_pose import WorkingPose


@pytest.mark.parametrize("fraction", [0.15, 0.8, 1.0])
def test_a_pass_is_a_step_of_every_joint(fraction):
    rng = random.Random(int(100 * fraction))
    compared = 0
    for _ in range(150):
        skeleton = random_skeleton(rng, rng.randrange(1, 9), tree=True)
        start = legal_pose(skeleton, rng)
        name = skeleton.joints[-1].name
        goal = PositionGoal(
            name, tail(skeleton, legal_pose(skeleton, rng)), max_extension=rng.choice((1.0, 0.9))
        )
        bodies = [WorkingPose(skeleton, start, [goal]) for _ in range(2)]
        for working in bodies:
            working.set_limits([joint.limit for joint in skeleton.joints], [0.0] * len(skeleton))
        visits = passes.plan_pass(bodies[0])
        if not visits:
            continue
        compared += 1
        for _ in range(3):
            passes.run_pass(bodies[0], visits, fraction, 0.0)
            for i in bodies[1].movable:
                bodies[1].step(i, fraction)
            bodies[1].recompute()
            carried = bodies[0].effectors[0].error().distance
            # From the same pose again: what single precision leaves must not pile up over the passes.
            assert carried == pytest.approx(bodies[1].effectors[0].error().distance, abs=20 * FLOAT32)
            bodies[0].recompute()
            assert bodies[0].effectors[0].error().distance == carried
            bodies[0].restore(bodies[1].rotations, bodies[1].slides)
    assert compared > 60


@pytest.mark.parametrize("length", [0.5, 2.0])
def test_what_errors_are_measured_against(length):
    """The bones that a goal can move, together; a chain of bones without length counts as one unit."""
    goals = [OrientationGoal("joint3", (1.0, 0.0, 0.0, 0.0)), PositionGoal("joint3", (1.0, 0.0, 0.0))]
    fields = {f"joint{i}": {"length": length, "offset": (0.0, length * (i > 0), 0.0)} for i in range(4)}
    skeleton = straight(4).replace(fields)
    working = WorkingPose(skeleton, Pose.rest(skeleton), goals)
    assert [length_scale(working, k) for k in (0, 1)] == pytest.approx([4.0 * length] * 2)
    points = straight(4, length=0.0)
    assert length_scale(WorkingPose(points, Pose.rest(points), goals[:1]), 0) == 1.0
