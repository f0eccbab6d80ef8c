"""Goals of a later priority beside retries; single joints; memory of searches."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig import (
    BalanceGoal,
    CoupledOffset,
    Drag,
    Grab,
    Hinge,
    InvalidInput,
    Joint,
    PoleGoal,
    Pose,
    PositionGoal,
    Skeleton,
    Slide,
    SolverSettings,
    SolveStatus,
    solve,
    solve_many,
)
from ccd_rig.limits.shapes import sample
from ccd_rig.skeleton.joints import MOST_KEPT
from ccd_rig.skeleton.kinematics import forward_kinematics


def hinged_chain_with_a_side_bone() -> Skeleton:
    limits = [Hinge((1, 0, 0), -0.4, 2.2) if i % 2 else Hinge((0, 0, 1), -1.2, 1.2) for i in range(6)]
    joints = [Joint(f"j{i}", i - 1, (0, 1 if i else 0, 0), limit=limits[i]) for i in range(6)]
    return Skeleton([*joints, Joint("side", 0, (0, 1, 0))])


@pytest.mark.parametrize("later", [(50.0, 0.0, 0.0), (0.5, -1.5, 0.5)])
def test_a_later_priority_makes_no_earlier_one_miss(later):
    skeleton, random, count = hinged_chain_with_a_side_bone(), Random(11), 120
    points = []
    for _ in range(count):
        drawn = {i: sample(skeleton.joints[i].limit, random) for i in range(6)}
        posed = Pose.rest(skeleton).with_rotations(drawn)
        points.append(forward_kinematics(skeleton, posed)[5].point(Vector((0, 1, 0)))[:])
    first, second = PositionGoal("j5", (0, 0, 0)), PositionGoal("side", later, priority=1)
    starts = [Pose.rest(skeleton)] * count
    result = solve_many(skeleton, starts, [first, second], targets=[np.array(points), None])
    assert result.distances[:, 0].max() <= SolverSettings().position_tolerance


def test_a_single_joint_that_slides_is_tried_from_other_starts():
    random, missed = Random(7), 0
    for n in range(60):
        axis = ((1, 0, 0), (0, 1, 0), (0, 0, 1))[n % 3]
        skeleton = Skeleton([Joint("a", slides=(Slide(axis, -1.5, 1.5),))])
        turned = Quaternion([random.gauss(0, 1) for _ in range(4)]).normalized()
        start = Pose([turned], [Vector(axis) * random.uniform(-1.5, 1.5)])
        target = Vector(axis) * random.uniform(-1, 1) + Vector([random.gauss(0, 0.3) for _ in range(3)])
        # Heads on the slide a bone's length off the target.
        along, across = target.dot(Vector(axis)), (target - target.dot(Vector(axis)) * Vector(axis)).length
        if across < 1.0 and min(abs(along + s * math.sqrt(1.0 - across**2)) for s in (-1, 1)) < 1.5:
            result = solve(skeleton, start, [PositionGoal("a", target)])
            missed += result.status is not SolveStatus.CONVERGED
    assert missed == 0


def test_a_single_joint_of_short_steps_reaches_its_target():
    skeleton = Skeleton([Joint("a", max_step=1e-5)])
    result = solve(skeleton, Pose.rest(skeleton), [PositionGoal("a", (0, 0, 1))])
    assert result.status is SolveStatus.CONVERGED


def test_values_of_weights_and_offsets_do_not_fill_the_memory():
    skeleton = hinged_chain_with_a_side_bone()
    rest, few = Pose.rest(skeleton), SolverSettings(restarts=0, max_iterations=1)
    goals = PositionGoal("j5", (1, 4, 1)), PositionGoal("side", (1, 1, 0))
    solve(skeleton, rest, goals, few)
    kept = len(skeleton._computed)
    for k in range(5):
        weighed = PositionGoal("j5", (1, 4, 1), weight=1.0 + k, max_extension=1.0), goals[1]
        solve(skeleton, rest, weighed, few)
    assert len(skeleton._computed) == kept
    for k in range(MOST_KEPT):
        solve(skeleton, rest, [PositionGoal("j5", (1, 4, 1), Vector((0, 0.5 + 1e-3 * k, 0)))], few)
    assert len(skeleton._computed) <= MOST_KEPT


def test_a_shared_search_takes_each_call_s_weights_and_pole_angles():
    skeleton = Skeleton([Joint("a"), Joint("b", 0, (0, 1, 0), limit=Hinge((1, 0, 0), 0.3, 2.5))])
    goals = [
        [PositionGoal("b", (0, 1, 1)), PoleGoal("a", "b", (3, 0, 0), angle=angle, weight=1.0 + angle)]
        for angle in (0.0, 1.0)
    ]
    rest = Pose.rest(skeleton)
    apart = [solve(Skeleton(skeleton.joints), rest, each).pose for each in goals]
    assert [solve(skeleton, rest, each).pose for each in goals] == apart
    assert apart[0] != apart[1]


def test_a_drag_judges_by_its_settings():
    joints = [Joint(f"j{i}", i - 1, (0, 1 if i else 0, 0)) for i in range(3)]
    skeleton = Skeleton(joints)
    for tolerance in (0.5, 1e-7):
        settings = SolverSettings(position_tolerance=tolerance, restarts=0)
        drag = Drag(skeleton, Pose.rest(skeleton), [Grab("j2")], settings=settings)
        for z in (0.5, 1.5, 2.5, 2.9, 2.99):
            result = drag.to([(0.0, 0.5, z)])
            met = all(settings.in_tolerances(error) <= 1.0 for error in result.errors)
            assert (result.status is SolveStatus.CONVERGED) == met


@pytest.mark.parametrize(
    "make",
    [
        lambda: Slide((1, 0, 0), -1e39, 1e39),
        lambda: PoleGoal("a", "b", (0, 0, 1), angle=1e61),
        lambda: CoupledOffset("a", (1, 0, 0), (0.0, 1.0), (0.0, 1e70)),
        lambda: CoupledOffset("a", (1, 0, 0), (0.0, 1e-300), (0.0, 1.0)),
    ],
)
def test_numbers_that_the_kernel_cannot_take_are_refused_where_they_are_given(make):
    with pytest.raises(InvalidInput):
        make()


def test_numbers_of_numpy_count_as_those_of_python():
    assert Joint("a", np.int64(-1)) == Joint("a")
    assert PositionGoal("a", (0, 0, 0), chain_length=np.int64(2), weight=np.float32(0.5)).weight == 0.5
    assert BalanceGoal((0, 0, 0), axes=np.array([True, True, False])).axes == (True, True, False)
    assert SolverSettings(max_iterations=np.int64(5)).max_iterations == 5
    with pytest.raises(InvalidInput):
        Joint("a", np.float64(0.0))


def test_rotations_of_many_poses_are_of_length_one():
    skeleton = Skeleton([Joint("a"), Joint("b", 0, (0, 1, 0))])
    rotations = np.array([[[1.0009, 0, 0, 0]] * 2])
    result = solve_many(skeleton, (rotations, np.zeros((1, 2, 3))), [PositionGoal("b", (0, 2, 0))])
    assert np.abs(np.linalg.norm(result.rotations, axis=2) - 1.0).max() < 1e-6
