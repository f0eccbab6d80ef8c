"""Very many random solves of every kind: limits, finite numbers, true reports, never worse than the start."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import mixtures
import pytest
from chains import random_rotation
from mathutils import Quaternion
from mixtures import faults, mixture
from seeds import few_and_all

from ccd_rig.goals import BalanceGoal, DirectionGoal, GoalError, OrientationGoal, PoleGoal, PositionGoal
from ccd_rig.limits.shapes import EulerBox, Hinge, ReversedLimit, SwingTwist
from ccd_rig.settings import SolveStatus, Sweep
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import iterate


@pytest.mark.parametrize("seeds", few_and_all(100, 6_000, 6))
def test_no_solve_breaks_a_promise(seeds):
    """See `mixtures.faults` for the promises; every tenth solve is made again, and step by step."""
    wrong = []
    for seed in seeds:
        case = mixture(seed)
        result = case.solve()
        wrong += [f"solve {seed}: {fault}" for fault in faults(case, result)]
        if seed % 10 == 0:
            if case.solve() != result:
                wrong.append(f"solve {seed}: differs when it is made again")
            *_, last = iterate(
                case.skeleton, case.start, case.goals, case.settings, case.poses, case.reference
            )
            if last != result:
                wrong.append(f"solve {seed}: `iterate` ends elsewhere")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seed", [744, 1988, 3091, 5193])
def test_a_solve_ends_no_farther_than_it_began_also_towards_a_reference_elsewhere(seed):
    """Few iterations, and a reference pose that is not the start: what is reached from there may be farther.

    Each of these ended farther where goals that are served first could give way as from the reference itself.
    """
    case, rng = mixture(seed), random.Random(seed)
    reference = mixtures._pose(case.skeleton, rng)
    settings = replace(case.settings, max_iterations=rng.choice((1, 2, 4, 10)))
    case = replace(case, reference=reference, settings=settings)
    assert case.reference != case.start
    assert faults(case, case.solve()) == []


def test_the_mixtures_hold_everything():
    """Guards the test above against a generator that leaves things out."""
    cases = [mixture(seed) for seed in range(300)]
    joints = [joint for case in cases for joint in case.skeleton.joints]
    goals = [goal for case in cases for goal in case.goals]
    assert {type(joint.limit) for joint in joints} == {type(None), Hinge, SwingTwist, EulerBox, ReversedLimit}
    assert {type(goal) for goal in goals} == {
        PositionGoal,
        OrientationGoal,
        DirectionGoal,
        PoleGoal,
        BalanceGoal,
    }
    assert {case.settings.sweep for case in cases} == set(Sweep)
    assert {goal.priority for goal in goals} == {0, 1, 2}
    positions = [goal for goal in goals if isinstance(goal, PositionGoal)]
    for some in (
        [bool(joint.slides) for joint in joints],
        [joint.comfort and joint.comfort.region for joint in joints],
        [joint.comfort and joint.comfort.tolerance for joint in joints],
        [joint.length == 0.0 for joint in joints],
        [not joint.inherit_rotation for joint in joints],
        [goal.max_extension < 1.0 for goal in positions],
        [goal.chain_length for goal in positions],
        [goal.two_bone_tip for goal in positions],
        [case.poses for case in cases],
    ):
        assert any(some)
    ends = {case.solve().status for case in cases[:100]}
    assert ends == set(SolveStatus)


def test_faults_are_found():
    """Guards the check itself: results that were tampered with have faults."""
    rng = random.Random(1)
    turned = trusted = worse = 0
    for seed in range(60):
        case = mixture(seed)
        result = case.solve()
        rotations, shifts = result.pose.rotations, result.pose.translations
        anyhow = Pose(tuple(random_rotation(rng) for _ in rotations), shifts)
        turned += any("limit" in fault for fault in faults(case, replace(result, pose=anyhow)))
        worse += any("worse" in fault for fault in faults(case, replace(result, pose=anyhow)))
        nothing = Quaternion((math.nan, 0.0, 0.0, 0.0)).freeze()
        empty = Pose.trusted((nothing, *rotations[1:]), shifts)
        assert faults(case, replace(result, pose=empty)) == ["not finite"]
        errors = tuple(GoalError(error.distance + 1e-3, error.angle) for error in result.errors)
        assert any("forward kinematics" in fault for fault in faults(case, replace(result, errors=errors)))
        ended = SolveStatus.STALLED if result.status is SolveStatus.CONVERGED else SolveStatus.CONVERGED
        trusted += any("met" in fault for fault in faults(case, replace(result, status=ended)))
    assert turned > 36 and worse > 18 and trusted == 60, (turned, worse, trusted)
