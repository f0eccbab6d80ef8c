"""Frames of a sequence, each for itself: which way they take where there are several."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mathutils import Euler, Quaternion, Vector

from ccd_rig.goals import Goal, OrientationGoal, PoleGoal, PositionGoal
from ccd_rig.limits.shapes import Hinge, Limit
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares.frames import Frames
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.requests import settled
from ccd_rig.solvers.least_squares.sequence import Sequence, _anchors, solve_sequence
from ccd_rig.solvers.least_squares.solve import Limits
from ccd_rig.solvers.least_squares.state import Bones, Poses, rebuilt, start_state
from ccd_rig.solvers.least_squares.ways import cheapest

TOLERANCE = 1e-4
KNEE = Hinge((1.0, 0.0, 0.0), math.radians(-120.0), math.radians(120.0))
X = Vector((1.0, 0.0, 0.0))
WHOLE = slice(None)


def leg(limit: Limit | None = KNEE) -> Skeleton:
    """A thigh and a shin of length 1, and a foot whose head is the goal."""
    up = (0.0, 1.0, 0.0)
    return Skeleton([Joint("thigh"), Joint("shin", 0, up, limit=limit), Joint("foot", 1, up)])


def frames_of(
    bends: np.ndarray, targets: np.ndarray, some: slice = WHOLE, limit: Limit | None = KNEE
) -> Frames:
    """Frames of a leg whose base bends the knee by these angles, radians, for targets (F, 3) of the ankle."""
    skeleton = leg(limit)
    goal = PositionGoal("foot", (0.0, 2.0, 0.0), offset=(0.0, 0.0, 0.0))
    problem = LeastSquaresProblem(skeleton, [goal], [joint.limit for joint in skeleton.joints])
    # The thigh leans back by half of the bend: the ankle stays above the hip.
    rotations = [(Quaternion(X, -0.5 * a), Quaternion(X, a), Quaternion()) for a in bends]
    poses = Poses.of([Pose(each, (Vector(),) * 3) for each in rotations]).at(some)
    size = poses.rotations.shape[-1]
    given = problem.given(Bones.of(skeleton), poses, [targets.T[:, some]], poses)
    base = start_state(problem.layout, given, poses)
    stop = Limits(np.full(size, TOLERANCE), 1e-3, 40)
    times = np.arange(len(bends), dtype=float)[some]
    return Frames(problem, given, base, stop, np.zeros(size, dtype=np.bool_), times)


def knees(solved: Sequence) -> np.ndarray:
    """The knee's angle, degrees."""
    w, x = solved.state.rotations[0, 1], solved.state.rotations[1, 1]
    return np.degrees(2.0 * np.arctan2(x, w))


def ankles(bends: np.ndarray, longer: float | np.ndarray = 0.0) -> np.ndarray:
    """(F, 3) where the ankle is with these bends, and farther from the hip."""
    found = np.zeros((len(bends), 3))
    found[:, 1] = 2.0 * np.cos(0.5 * bends) + longer
    return found


@pytest.mark.parametrize("last", [100, 110, 171])
def test_after_a_stretch_out_of_reach_the_knee_bends_to_its_side_again(last):
    time = np.arange(last, dtype=float)
    bends = np.radians(20.0 + 15.0 * np.sin(time / 9.0))
    away = 0.3 * np.exp(-(((time - 86.0) / 8.0) ** 2)) - 0.02
    solved = settled(solve_sequence(frames_of(bends, ankles(bends, away))))
    assert (solved.excess[70:] > 1.0).sum() > 5, "some are out of reach"
    met = solved.excess <= 1.0
    assert met[:70].all()
    assert knees(solved)[met].min() > 0.0


def test_a_limb_that_is_nearly_straight_ends_alike_in_any_range():
    time = np.arange(171, dtype=float)
    bends = np.radians(4.0 + 3.5 * np.sin(time / 7.0))
    targets = ankles(bends)
    targets[:, 0] = 0.06 * np.sin(time / 11.0)
    targets[:, 1] -= 0.002 * (1.5 + np.cos(time / 5.0))
    whole = settled(solve_sequence(frames_of(bends, targets, limit=None)))
    inside = slice(100, 150)
    part = settled(solve_sequence(frames_of(bends, targets, inside, limit=None)))
    same = np.abs((whole.state.rotations[..., inside] * part.state.rotations).sum(0))
    assert (whole.excess <= 1.0).all()
    assert np.degrees(2.0 * np.arccos(np.minimum(same, 1.0))).max() < 0.01


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_frames_beside_one_that_is_fixed_bend_to_the_same_side(side):
    """Both sides are equally near to a straight base."""
    bends = np.zeros(40)
    targets = ankles(bends)
    targets[:, 1] -= 0.1 + 0.05 * np.sin(np.arange(40) / 6.0)
    frames = frames_of(bends, targets)
    angle = 2.0 * side * math.acos(0.5 * targets[0, 1])
    base, layout = frames.base, frames.problem.layout
    balls = base.rotations[:, layout.ball_rows].copy()
    balls[:, 0, 0] = Quaternion(X, -0.5 * angle)[:]
    angles = base.angles.copy()
    angles[0, 0] = angle
    held = rebuilt(layout, frames.given, base, balls, angles, base.slides)
    fixed = np.arange(40) == 0
    frames = Frames(frames.problem, frames.given, held, frames.limits, fixed, frames.times)
    solved = settled(solve_sequence(frames))
    assert (solved.excess <= 1.0).all()
    assert (side * knees(solved) > 10.0).all()
    assert np.array_equal(solved.state.rotations[..., 0], held.rotations[..., 0])


def test_what_starts_elsewhere_goes_back_to_its_base():
    """Such as poses that a restart found: their feet are turned, though no goal asks for it."""
    bends = np.radians(np.linspace(30.0, 50.0, 20))
    frames = frames_of(bends, ankles(bends))
    balls = frames.base.rotations[:, frames.problem.layout.ball_rows].copy()
    balls[:, 1] = np.array(Quaternion((0.0, 0.0, 1.0), 0.8)[:])[:, None]
    start = rebuilt(
        frames.problem.layout, frames.given, frames.base, balls, frames.base.angles, frames.base.slides
    )
    assert (frames.problem.evaluate(frames.given, start).excess(frames.limits.position, 1e-3) <= 1.0).all()
    begun = Frames(frames.problem, frames.given, start, frames.limits, frames.fixed, frames.times)
    solved = settled(solve_sequence(begun, from_base=False))
    assert not solved.kept.any()
    assert (solved.excess <= 1.0).all()
    foot = solved.state.rotations[:, 2]
    assert np.degrees(2.0 * np.arccos(np.minimum(np.abs(foot[0]), 1.0))).max() < 0.1


def turns(solved: Sequence) -> np.ndarray:
    """(J, F - 1) degrees that joints turn from one frame to the next."""
    q = solved.state.rotations
    return np.degrees(2.0 * np.arccos(np.minimum(np.abs((q[..., 1:] * q[..., :-1]).sum(0)), 1.0)))


def around_a_snake(size: int) -> np.ndarray:
    """(F,) angles of what goes once round a snake, radians."""
    return 2.0 * math.pi * np.arange(1, size + 1) / size


def snake(goal: Goal, goal_targets: np.ndarray, bend: float = 0.0) -> Frames:
    """20 bones whose target goes round them, and one more goal; the base bends each by so many degrees."""
    count, size = 20, goal_targets.shape[-1]
    joints = [Joint(f"bone{i}", i - 1, (0.0, 0.25 * (i > 0), 0.0), length=0.25) for i in range(count)]
    goals = [PositionGoal("bone19", (0.0, 1.0, 0.0)), goal]
    problem = LeastSquaresProblem(Skeleton(joints), goals, [None] * count)
    bent = (Quaternion(X, math.radians(bend)),) * count
    poses = Poses.of([Pose(bent, (Vector(),) * count)] * size)
    a = around_a_snake(size)
    wide, high = 2.25 + 0.5 * np.cos(2.0 * a), 2.5 + 0.75 * np.sin(3.0 * a)
    targets = np.array([wide * np.cos(a), high, -2.25 * np.sin(a)])
    given = problem.given(Bones.of(problem.skeleton), poses, [targets, goal_targets], poses)
    stop = Limits(np.full(size, TOLERANCE), 1e-3, 40)
    base = start_state(problem.layout, given, poses)
    return Frames(problem, given, base, stop, np.zeros(size, dtype=np.bool_), np.arange(size, dtype=float))


def test_a_long_chain_follows_a_pole_smoothly():
    """Its root alone would twist half round, and jump on the way."""
    a = around_a_snake(250)
    poles = 10.0 * np.array([-np.sin(a), np.full(250, 0.25), -np.cos(a)])
    solved = settled(solve_sequence(snake(PoleGoal("bone0", "bone19", (0.0, 1.0, 0.0)), poles, 2.0)))
    assert (solved.excess <= 1.0).all()
    assert turns(solved).max() < 2.0
    w, _, y, _ = solved.state.rotations
    assert np.degrees(2.0 * np.arctan(np.abs(y / w))).max() < 10.0


def test_where_the_nearest_pose_jumps_the_chain_goes_over_gradually():
    """In some frames there are two poses nearest to the base, their first bones 13 degrees apart."""
    down = Quaternion(X, -math.pi / 2.0)
    swaying = [
        down
        @ Euler(
            (math.pi / 2.0 + 0.5 * math.sin(a), 0.3 * math.cos(2.0 * a), 0.5 * math.cos(a))
        ).to_quaternion()
        for a in around_a_snake(250)
    ]
    goal = OrientationGoal("bone19", (1.0, 0.0, 0.0, 0.0))
    frames = snake(goal, np.array([rotation[:] for rotation in swaying]).T)
    solved = settled(solve_sequence(frames))
    assert (solved.excess <= 1.0).all()
    assert turns(solved).max() < 2.5


def test_what_meets_its_goals_stays_to_the_bit():
    bends = np.radians(np.linspace(30.0, 50.0, 40))
    frames = frames_of(bends, ankles(bends))
    solved = settled(solve_sequence(frames))
    assert solved.kept.all()
    assert np.array_equal(solved.state.rotations, frames.base.rotations)


def test_the_cheapest_sequence():
    costs = np.array([[0.0, 0.0, 5.0], [0.5, 0.5, 0.0]])
    links = np.array([[[0.0, 0.0], [2.0, 2.0]], [[2.0, 2.0], [0.0, 0.0]]])
    assert cheapest(costs, links).tolist() == [1, 1, 1]
    assert cheapest(costs, 0.0 * links).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("kept", "keys", "anchors"),
    [
        ([], [0, 4, 8], [0, 4, 8]),
        ([0], [1, 5, 8], [0, 1, 5, 8]),
        ([8], [0, 4, 7], [0, 4, 7, 8]),
        ([0, 1, 2], [3, 8], [2, 3, 8]),
        ([3, 5], [0, 2, 4, 6], [0, 2, 3, 4, 5, 6]),
    ],
)
def test_key_poses_and_what_is_kept_beside_them_are_led_through(kept, keys, anchors):
    mask = np.isin(np.arange(9), kept)
    assert _anchors(mask, np.array(keys)).tolist() == anchors
