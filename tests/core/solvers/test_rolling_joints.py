"""Joints with several slides and coupled offsets in solves: promises, a walker's leg, and weighted fits."""

from __future__ import annotations

import math
import random
from array import array
from dataclasses import replace

import numpy as np
import pytest
from chains import FLOAT32
from mathutils import Quaternion, Vector
from mixtures import faults, mixture
from seeds import few_and_all

from ccd_rig import (
    CoupledOffset,
    EulerBox,
    Hinge,
    Joint,
    Pose,
    PositionGoal,
    Skeleton,
    Slide,
    Solver,
    SolverSettings,
    SolveStatus,
    forward_kinematics,
    sample,
    solve,
    solve_many,
)
from ccd_rig.kernel.ccd import share_steps, start_carrying, step_joint
from ccd_rig.kernel.pose import begin
from ccd_rig.kernel.skeleton import Problem
from ccd_rig.skeleton.joints import shift_of
from ccd_rig.solvers.problem_tables import problem_tables, reach_of_goals

NEAR = 1e-5


@pytest.mark.parametrize("seeds", few_and_all(60, 1200, 2))
def test_no_solve_breaks_a_promise(seeds: range) -> None:
    wrong = []
    for seed in seeds:
        case = mixture(seed, rolls=True)
        wrong += [f"solve {seed}: {fault}" for fault in faults(case, case.solve())]
    assert not wrong, "\n".join(wrong)


def test_the_mixtures_roll() -> None:
    joints = [joint for seed in range(100) for joint in mixture(seed, rolls=True).skeleton.joints]
    assert {len(joint.slides) for joint in joints} == {0, 1, 2, 3}
    assert any(joint.coupled_offsets for joint in joints)


def test_a_step_of_ccd_that_is_taken_back_counts_as_no_motion() -> None:
    """The best turn of a hinge neglects offsets coupled to it, and may lead away from the target."""
    taken_back = 0
    for seed in range(30):
        rng = random.Random(seed)
        limit, ends = Hinge((1.0, 0.0, 0.0), -1.5, 1.5), (-1.5, 1.5)
        hinges = [Joint(f"j{i}", i - 1, (0.0, 1.0, 0.0), limit=limit) for i in (0, 1)]
        rolls = CoupledOffset("j0", (0.0, 0.3, 1.0), ends, [rng.uniform(-3.0, 3.0) for _ in ends])
        skeleton = Skeleton([hinges[0], replace(hinges[1], coupled_offsets=(rolls,))])
        goals = [PositionGoal("j1", [rng.uniform(-3.0, 3.0) for _ in range(3)])]
        tables = problem_tables(skeleton, goals, [limit, limit], (0, 1), (0.0, 0.0))
        p = Problem(tables, reach_of_goals(skeleton, goals), 1e-4, 1e-3)
        p.rotation[:] = array("d", [1.0, 0.0, 0.0, 0.0] * 2)
        p.target[:3] = array("d", goals[0].target)
        share_steps(p, 0.0)
        begin(p)
        for _ in range(6):
            start_carrying(p)
            was, before = list(p.effector), p.angle[0]
            motion = step_joint(p, 0, 1.0)
            assert abs(p.last_turn - abs(p.angle[0] - before)) <= 1e-9
            if abs(p.angle[0] - before) <= 1e-12:
                taken_back += motion <= 1e-9
                assert motion <= 1e-9 and list(p.effector) == pytest.approx(was, abs=1e-9), seed
    assert taken_back > 10


# --- the leg of a walker ----------------------------------------------------------------------------

# The knee of Yamaguchi & Zajac 1989 ("A planar model of the knee joint", J. Biomechanics 22), as Delp et al.
# 1990 have it: where the shank is in the thigh, metres over radians.
BACK = (-2.0944, -1.74533, -1.39626, -1.0472, -0.698132, -0.349066, -0.174533, 0.197344)
FORWARD = (-0.0032, 0.00179, 0.00411, 0.0041, 0.00212, -0.001, -0.0031, -0.005227)
BENT = (-2.0944, -1.22173, -0.523599, -0.349066, -0.174533, 0.159149)
DOWN = (-0.4226, -0.4082, -0.399, -0.3976, -0.3966, -0.395264)
RIGHT = math.pi / 2.0


def walker() -> Skeleton:
    """Pelvis with three slides, hips, knees that roll, and ankles about oblique axes; Y is up."""
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    slides = tuple(Slide(axis, -2.0, 2.0) for axis in axes)
    joints = [Joint("pelvis", limit=EulerBox("YXZ", (-RIGHT,) * 3, (RIGHT,) * 3), slides=slides)]
    for side, sign in (("R", 1.0), ("L", -1.0)):
        hip, knee = len(joints), f"knee.{side}"
        box = EulerBox("YXZ", (-0.8, -0.7, -0.6), (0.8, 0.7, 1.6))
        joints.append(Joint(f"hip.{side}", 0, (-0.0707, -0.0661, 0.0835 * sign), limit=box))
        rolls = CoupledOffset(knee, axes[0], BACK, FORWARD), CoupledOffset(knee, axes[1], BENT, DOWN)
        joints.append(Joint(knee, hip, limit=Hinge(axes[2], -2.0, 0.1), coupled_offsets=rolls))
        ankle = Hinge((-0.105 * sign, -0.174 * sign, 0.979), -0.8, 0.6)
        joints.append(Joint(f"ankle.{side}", hip + 1, (0.0, -0.43, 0.0), limit=ankle))
    return Skeleton(joints)


POINTS = ((0.08, -0.1, 0.0), (-0.02, -0.15, 0.05), (0.03, -0.05, -0.05))


def markers(skeleton: Skeleton, weights: dict[str, float] | None = None) -> list[PositionGoal]:
    return [
        PositionGoal(joint.name, (0, 0, 0), point, (weights or {}).get(joint.name, 1.0))
        for joint in skeleton.joints
        for point in POINTS
    ]


def places(skeleton: Skeleton, pose: Pose) -> np.ndarray:
    transforms = forward_kinematics(skeleton, pose)
    return np.array([place.point(Vector(point))[:] for place in transforms for point in POINTS])


def anywhere(skeleton: Skeleton, rng: random.Random) -> Pose:
    rotations = tuple(sample(joint.limit, rng) for joint in skeleton.joints)
    shifts = [[rng.uniform(-0.5, 0.5) for _ in joint.slides] for joint in skeleton.joints]
    return Pose(rotations, tuple(map(shift_of, skeleton.joints, shifts)))


@pytest.mark.parametrize("seed", range(3))
def test_markers_of_a_pose_bring_a_walker_to_it(seed: int) -> None:
    """From rest to poses anywhere inside the limits, all markers met: by one solve, and by many at once."""
    skeleton, rng = walker(), random.Random(seed)
    rest = Pose.rest(skeleton)
    wanted = [places(skeleton, anywhere(skeleton, rng)) for _ in range(6)]
    settings = SolverSettings(position_tolerance=1e-4, max_iterations=300, restarts=8)
    goals = markers(skeleton)
    targets = np.array(wanted)
    found = solve_many(
        skeleton, [rest] * 6, goals, settings, targets=[targets[:, n] for n in range(len(goals))]
    )
    assert set(found.statuses) == {SolveStatus.CONVERGED}
    for k in range(6):
        assert np.abs(places(skeleton, found.pose(k)) - wanted[k]).max() <= 1.1e-4
    own = [
        PositionGoal(goal.joint, at, goal.offset) for goal, at in zip(goals, wanted[0].tolist(), strict=True)
    ]
    result = solve(skeleton, rest, own, settings)
    assert result.status is SolveStatus.CONVERGED
    assert np.abs(places(skeleton, result.pose) - wanted[0]).max() <= 1.1e-4


@pytest.mark.parametrize("seed", range(3))
def test_a_weighted_fit_ends_where_no_coordinate_wins(seed: int) -> None:
    """Markers that are off: neither an angle nor a slide lowers the weighted square error any more."""
    skeleton, rng = walker(), random.Random(seed)
    wanted = places(skeleton, anywhere(skeleton, rng))
    wanted = wanted + np.array([[rng.gauss(0.0, 0.02) for _ in range(3)] for _ in wanted])
    goals = markers(skeleton, {"pelvis": 10.0, "ankle.L": 3.0})
    weights = np.array([goal.weight for goal in goals])
    # So near no marker comes by chance: one that is met would count nothing.
    settings = SolverSettings(position_tolerance=1e-7, max_iterations=500, restarts=8)
    found = solve_many(
        skeleton, [Pose.rest(skeleton)], goals, settings, targets=[wanted[None, n] for n in range(len(goals))]
    )
    assert found.statuses == (SolveStatus.OPTIMAL,)
    pose = found.pose(0)

    def error(tried: Pose) -> float:
        return float((weights * ((places(skeleton, tried) - wanted) ** 2).sum(1)).sum())

    least = error(pose)
    for i, joint in enumerate(skeleton.joints):
        for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
            for step in (-0.01, 0.01):
                turned = pose.rotations[i] @ Quaternion(axis, step)
                tried = pose.with_rotations({i: joint.allowed(turned.normalized())})
                assert error(tried) >= least * (1.0 - 1e-4)
                if joint.slides:
                    shifts = list(pose.translations)
                    shifts[i] = shifts[i] + step * Vector(axis)
                    assert error(Pose(pose.rotations, tuple(shifts))) > least


def test_three_slides_reach_inside_their_box_and_stop_at_it() -> None:
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    cart = Skeleton(
        [Joint("cart", limit=Hinge(axes[1], 0.0, 0.0), slides=tuple(Slide(axis, -1.0, 2.0) for axis in axes))]
    )
    for solver in Solver:
        settings = SolverSettings(position_tolerance=NEAR, solver=solver)
        inside = solve(cart, Pose.rest(cart), [PositionGoal("cart", (1.5, 1.9, -0.7))], settings)
        assert inside.status is SolveStatus.CONVERGED
        assert inside.pose.translations[0][:] == pytest.approx((1.5, 0.9, -0.7), abs=2.0 * NEAR)
        beyond = solve(cart, Pose.rest(cart), [PositionGoal("cart", (5.0, 1.5, -5.0))], settings)
        assert beyond.status is SolveStatus.OPTIMAL
        assert beyond.pose.translations[0][:] == pytest.approx((2.0, 0.5, -1.0), abs=FLOAT32)
