"""Reach windows in least squares: slopes against differences, held in every pose, as near as CCD comes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from chains import Z, legal_pose, straight, tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import BalanceGoal, PositionGoal, measure
from ccd_rig.limits.shapes import Cone, Hinge, Limit, Slide, SwingTwist
from ccd_rig.settings import Solver, SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares.frames import Frames
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.requests import settled
from ccd_rig.solvers.least_squares.solve import Limits
from ccd_rig.solvers.least_squares.state import (
    Bones,
    Poses,
    moved_state,
    start_state,
    stepped_balls,
)
from ccd_rig.solvers.least_squares.windowed import entered, solve_frames
from ccd_rig.solvers.least_squares.windows import hold
from ccd_rig.solvers.many import solve_many
from ccd_rig.solvers.solve import solve

TOLERANCE = 1e-3
SETTINGS = SolverSettings(position_tolerance=TOLERANCE)
LIMITS = {"free": None, "cones": SwingTwist(Cone(0.7), (-0.5, 0.5)), "hinges": Hinge(Z, -1.2, 1.2)}
PART = 3
"""Joints of the window, counted from the tip."""


def goal(target: object = (0.0, 1.0, 0.0), most: float = 0.9) -> PositionGoal:
    return PositionGoal("joint4", target, max_extension=most, extension_joints=PART)


def extent(skeleton: Skeleton, pose: Pose) -> float:
    transforms = forward_kinematics(skeleton, pose)
    return (tail(skeleton, pose) - transforms[5 - PART].translation).length


def targets(skeleton: Skeleton, rng: random.Random, count: int = 20) -> list[Vector]:
    """In reach of random poses, which may be past their windows, and out of reach."""
    inside = [tail(skeleton, legal_pose(skeleton, rng)) for _ in range(count)]
    return [*inside, *(1.5 * each + Vector((0.0, 3.5, 0.0)) for each in inside[: count // 2])]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inherits", [True, False])
def test_the_slope_of_a_window_is_that_of_differences(seed: int, inherits: bool) -> None:
    """Also where joints below the part turn one inside it by its place alone."""
    rng = random.Random(seed)
    limit = (None, Hinge((0.6, 0.0, 0.8), -3.0, 3.0))[seed % 2]
    fields = {"slides": (Slide((0.0, 1.0, 0.0), -0.5, 0.5),), "inherit_rotation": inherits}
    skeleton = straight(5, limit).replace({"joint3": fields})
    problem = LeastSquaresProblem(skeleton, [goal()], [limit] * 5)
    poses = Poses.of([legal_pose(skeleton, rng) for _ in range(3)])
    given = problem.given(Bones.of(skeleton), poses, problem.own_targets())
    given = hold(given, np.ones((1, 3), np.bool_))
    state = start_state(problem.layout, given, poses)
    _, slope = problem.jacobian(given, problem.evaluate(given, state))

    def values(step: np.ndarray) -> np.ndarray:
        balls = stepped_balls(problem.layout, state, step)
        moved = moved_state(problem.layout, given, state, step, balls)
        return problem.evaluate(given, moved).values

    for column in range(problem.layout.columns):
        step = np.zeros((problem.layout.columns, 3))
        step[column] = 1e-6
        found = (values(step) - values(-step)) / 2e-6
        assert slope[:, column] == pytest.approx(found, abs=1e-3)  # windows weigh 1000 times as much
    assert given.windows[0] == pytest.approx(0.9 * PART, rel=1e-6)


@pytest.mark.parametrize("name", LIMITS)
def test_windows_are_held_in_every_pose_and_targets_met_as_by_ccd(name: str) -> None:
    skeleton = straight(5, LIMITS[name])
    wanted = targets(skeleton, random.Random(2))
    start = Pose.rest(skeleton)  # straight: stretched past the window
    many = solve_many(skeleton, [start] * len(wanted), [goal()], SETTINGS, targets=[[t[:] for t in wanted]])
    met = nearer = 0.0
    for k, target in enumerate(wanted):
        assert extent(skeleton, many.pose(k)) <= 0.9 * PART + TOLERANCE, k
        once = solve(skeleton, start, [goal(target)], SETTINGS)
        met += (many.statuses[k] is SolveStatus.CONVERGED) - (once.status is SolveStatus.CONVERGED)
        if extent(skeleton, once.pose) <= 0.9 * PART + TOLERANCE:
            nearer += once.errors[0].distance - many.distances[k, 0]
    assert met >= 0 and nearer > -0.02 * len(wanted)


def test_a_window_asks_for_nothing_inside_it() -> None:
    """The same bits as without one, where the solution stays inside."""
    skeleton, rng = straight(5, LIMITS["cones"]), random.Random(4)
    starts = [legal_pose(skeleton, rng) for _ in range(20)]
    wanted = [tail(skeleton, legal_pose(skeleton, rng))[:] for _ in starts]
    free = solve_many(skeleton, starts, [goal(most=1.0)], SETTINGS, targets=[wanted])
    held = solve_many(skeleton, starts, [goal(most=0.97)], SETTINGS, targets=[wanted])
    inside = [
        max(extent(skeleton, pose) for pose in (starts[k], free.pose(k))) < 0.96 * PART for k in range(20)
    ]
    settled = [k for k in range(20) if inside[k] and free.statuses[k] is SolveStatus.CONVERGED]
    assert len(settled) > 5
    same = [np.abs(free.rotations[k] - held.rotations[k]).max() < 1e-9 for k in settled]
    assert sum(same) >= len(settled) - 2  # a first try past the window may have gone on elsewhere


def test_a_window_and_its_batch_do_not_depend_on_other_poses() -> None:
    skeleton = straight(5, LIMITS["cones"])
    wanted = [each[:] for each in targets(skeleton, random.Random(6))]
    start = [Pose.rest(skeleton)] * len(wanted)
    many = solve_many(skeleton, start, [goal()], SETTINGS, targets=[wanted])
    for k in (0, 7, 25):
        one = solve_many(skeleton, start[:1], [goal()], SETTINGS, targets=[wanted[k : k + 1]])
        assert np.array_equal(one.rotations[0], many.rotations[k])
        assert one.statuses[0] is many.statuses[k]


@pytest.mark.parametrize("limit", LIMITS.values())
def test_what_a_window_holds_back_is_optimal(limit: Limit | None) -> None:
    """Beyond reach of the window, not of the chain."""
    skeleton = straight(5, limit)
    bent = Pose.rest(skeleton).with_rotations({i: Quaternion(Z, 0.6) for i in range(5)})
    far = goal((0.1, 4.95, 0.0))
    many = solve_many(skeleton, [bent], [far], SETTINGS)
    once = solve(skeleton, bent, [far], SETTINGS)
    for status, distance in (
        (many.statuses[0], many.distances[0, 0]),
        (once.status, once.errors[0].distance),
    ):
        assert status is SolveStatus.OPTIMAL
        assert distance == pytest.approx(0.1 * PART - 0.05, abs=0.02)


def test_two_windows_on_a_shared_trunk_are_both_held() -> None:
    """Two arms of three on a trunk of three; one target near, one far."""
    from ccd_rig.skeleton.joints import Joint

    joints = [Joint(f"trunk{i}", i - 1, (0.0, 1.0 if i else 0.0, 0.0)) for i in range(3)]
    for side, sign in (("l", 1.0), ("r", -1.0)):
        for i in range(3):
            parent = len(joints) - 1 if i else 2
            rest = Quaternion() if i else Quaternion(Z, -sign * 1.2)
            joints.append(Joint(f"{side}{i}", parent, (0.0, 1.0, 0.0), rest))
    skeleton = Skeleton(joints)
    goals = [
        PositionGoal("l2", (3.2, 3.6, 0.5), max_extension=0.95, extension_joints=3),
        PositionGoal("r2", (-2.0, 3.0, 0.4), max_extension=0.95, extension_joints=3),
    ]
    many = solve_many(skeleton, [Pose.rest(skeleton)], goals, SETTINGS)
    transforms = forward_kinematics(skeleton, many.pose(0))
    for side in ("l", "r"):
        first, last = (transforms[skeleton.index(f"{side}{i}")] for i in (0, 2))
        end = last.point(Vector((0.0, 1.0, 0.0)))
        assert (end - first.translation).length <= 0.95 * 3.0 + TOLERANCE
    assert many.statuses[0] is SolveStatus.CONVERGED


def test_residuals_of_windows_and_goals_that_count_fewer_axes_are_told_apart() -> None:
    """A window's row beside a balance on two axes: as many rows in all as two goals of three have."""
    heavy = {f"joint{i}": {"mass": 1.0} for i in range(5)}
    skeleton, rng = straight(5).replace(heavy), random.Random(5)
    goals = [goal((2.0, 1.0, 0.5)), BalanceGoal((0.4, 0.0, 0.3), (True, False, True))]
    problem = LeastSquaresProblem(skeleton, goals, [None] * 5)
    drawn = [legal_pose(skeleton, rng) for _ in range(3)]
    poses = Poses.of(drawn)
    given = hold(problem.given(Bones.of(skeleton), poses, problem.own_targets()), np.ones((1, 3), np.bool_))
    found = problem.evaluate(given, start_state(problem.layout, given, poses))
    assert found.values.shape == (6, 3)
    assert found.square == pytest.approx((found.values**2).sum(0))
    for k, pose in enumerate(drawn):
        transforms = forward_kinematics(skeleton, pose)
        errors = [measure(each, skeleton, transforms).distance for each in goals]
        assert found.misses[:, k] == pytest.approx(errors, abs=1e-5)
        off = abs(extent(skeleton, pose) - 0.9 * PART)
        assert found.stretched[0, k] == pytest.approx(off, abs=1e-5)
        assert found.excess(1e-3, 1e-3)[k] == pytest.approx(max(*errors, off) / 1e-3, rel=1e-2)


@pytest.mark.parametrize("tolerance", [1e-3, 0.05])
def test_how_far_a_window_is_from_being_held_counts_as_a_miss(tolerance: float) -> None:
    """A straight chain on its target, whose last three bones may be stretched to 0.9 of their length."""
    skeleton = straight(5)
    problem = LeastSquaresProblem(skeleton, [goal((0.0, 5.0, 0.0))], [None] * 5)
    poses = Poses.of([Pose.rest(skeleton)] * 2)
    given = hold(problem.given(Bones.of(skeleton), poses, problem.own_targets()), np.array([[True, False]]))
    found = problem.evaluate(given, start_state(problem.layout, given, poses))
    assert found.excess(tolerance, 1e-3) == pytest.approx([0.1 * PART / tolerance, 0.0], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("lower", "upper", "side"), [(-0.7, 0.1, 1.0), (-1.5, 0.1, -1.0)])
def test_hinges_of_a_straight_part_bend_to_where_they_have_more_room(
    lower: float, upper: float, side: float
) -> None:
    """Bent by 0.6 at rest, and straightened by their angles."""
    hinge = {"rest_rotation": Quaternion(Z, 0.6), "limit": Hinge(Z, lower, upper)}
    skeleton = straight(5).replace({"joint3": hinge, "joint4": hinge})
    problem = LeastSquaresProblem(skeleton, [goal()], [joint.limit for joint in skeleton.joints])
    upright = Pose.rest(skeleton).with_rotations({i: Quaternion(Z, -0.6) for i in (3, 4)})
    poses = Poses.of([upright] * 2)
    given = hold(problem.given(Bones.of(skeleton), poses, problem.own_targets()), np.ones((1, 2), np.bool_))
    state = start_state(problem.layout, given, poses)
    assert state.angles == pytest.approx(-0.6, abs=1e-6)
    bent = entered(problem, given, state)
    assert (side * (bent.angles - state.angles) > 1e-3).all()


@pytest.mark.parametrize("height", [3.0, 4.5])  # the higher ones would be met past the windows too
def test_fixed_frames_stay_even_where_they_are_past_their_windows(height: float) -> None:
    skeleton, size = straight(5), 9
    problem = LeastSquaresProblem(skeleton, [goal()], [None] * 5)
    poses = Poses.of([Pose.rest(skeleton)] * size)
    wanted = np.array([(0.1 * k, height, 0.5) for k in range(size)]).T
    given = problem.given(Bones.of(skeleton), poses, [wanted], poses)
    base, fixed = start_state(problem.layout, given, poses), np.arange(size) % 4 == 0
    stop = Limits(np.full(size, TOLERANCE), 1e-3, 40)
    found = settled(solve_frames(Frames(problem, given, base, stop, fixed, np.arange(float(size)))))
    assert np.array_equal(found.state.rotations[..., fixed], base.rotations[..., fixed])
    past = problem.overstretched(given, found.state)[0]
    assert past[fixed] == pytest.approx(0.1 * PART, abs=1e-5)
    assert (past[~fixed] <= TOLERANCE).all() and (found.excess[~fixed] <= 1.0).all()


@pytest.mark.parametrize("past", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("solver", Solver)
def test_a_pose_past_its_window_is_worse_than_any_that_misses_its_goal(past: float, solver: Solver) -> None:
    """A straight chain meets its goal past its window: it gives the goal up."""
    skeleton, most = straight(5), (PART - past) / PART
    settings, start = replace(SETTINGS, solver=solver), Pose.rest(skeleton)
    high = goal((0.0, 5.0, 0.0), most)
    many, once = solve_many(skeleton, [start], [high], settings), solve(skeleton, start, [high], settings)
    for pose in (many.pose(0), once.pose):
        assert extent(skeleton, pose) <= most * PART + TOLERANCE
        assert (tail(skeleton, pose) - high.target).length > TOLERANCE
