"""Frames of a sequence baked alone, in longer ranges, in chunks: what agrees, and what is named as led."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.goals import DirectionGoal, Goal, OrientationGoal, PoleGoal, PositionGoal
from ccd_rig.limits.shapes import Cone, Hinge, Limit, SwingTwist
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares.departures import departures, largest_changes
from ccd_rig.solvers.least_squares.frames import Frames
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.requests import settled
from ccd_rig.solvers.least_squares.sequence import solve_sequence
from ccd_rig.solvers.least_squares.solve import Limits, solve_batch
from ccd_rig.solvers.least_squares.state import Bones, Poses, State, rebuilt, start_state

AGREE, AT_LIMITS = 0.01, 0.05  # degrees; the second where joints are at the limits of cones
X = Vector((1.0, 0.0, 0.0))
FRAMES = 180
KINDS = ("position", "orientation", "direction", "pole", "cones", "hinges")


def waves(rng: np.random.Generator, count: int, size: float) -> np.ndarray:
    """(count, FRAMES) smooth random curves."""
    time = np.arange(FRAMES) / FRAMES
    found = np.zeros((count, FRAMES))
    for rounds in (1, 2, 3):
        phases = rng.uniform(0.0, 2.0 * math.pi, (count, 1))
        found += size / rounds * rng.normal(size=(count, 1)) * np.sin(2.0 * math.pi * rounds * time + phases)
    return found


def limits_of(kind: str, count: int) -> list[Limit | None]:
    if kind == "cones":
        return [SwingTwist(Cone(math.radians(70.0 if count < 10 else 30.0)))] * count
    if kind == "hinges":
        hinge = Hinge((1.0, 0.0, 0.0), math.radians(-90.0), math.radians(90.0))
        return [hinge if i % 2 else SwingTwist(Cone(math.radians(50.0))) for i in range(count)]
    return [None] * count


def scene(kind: str, count: int, seed: int) -> Frames:
    """A moving chain of length 1 whose end goes round it, and is turned or directed, or the chain bent."""
    rng = np.random.default_rng(seed)
    joints = [
        Joint(f"bone{i}", i - 1, (0.0, float(i > 0) / count, 0.0), length=1.0 / count) for i in range(count)
    ]
    skeleton, last = Skeleton(joints), f"bone{count - 1}"
    bends = waves(rng, count, 0.6 / count)
    rotations = [tuple(Quaternion(X, 0.3 / count + b) for b in each) for each in bends.T]
    poses = Poses.of([Pose(each, (Vector(),) * count) for each in rotations])
    around = 2.0 * math.pi * np.arange(FRAMES) / FRAMES
    place = np.array([0.45 * np.cos(around), np.full(FRAMES, 0.45), 0.45 * np.sin(around)])
    place += waves(rng, 3, 0.06)
    goals: list[Goal] = [PositionGoal(last, (0.0, 0.0, 0.0))]
    targets = [place]
    turned = waves(rng, 3, 0.3)
    if kind == "orientation":
        q = np.array([Quaternion((1.0, *each)).normalized()[:] for each in turned.T]).T
        goals.append(OrientationGoal(last, Quaternion()))
        targets.append(q)
    elif kind == "direction":
        way = turned + np.array([[0.0], [1.0], [0.0]])
        goals.append(DirectionGoal(last, (0.0, 1.0, 0.0), (0.0, 1.0, 0.0)))
        targets.append(way / np.sqrt((way * way).sum(0)))
    elif kind == "pole":
        goals.append(PoleGoal("bone0", last, (0.0, 0.0, 1.0)))
        targets.append(2.0 * np.array([-np.sin(around), np.full(FRAMES, 0.25), np.cos(around)]))
    problem = LeastSquaresProblem(skeleton, goals, limits_of(kind, count))
    given = problem.given(Bones.of(skeleton), poses, targets, poses)
    stop = Limits(np.full(FRAMES, 1e-4), 1e-3, 40)
    base = start_state(problem.layout, given, poses)
    return Frames(problem, given, base, stop, np.zeros(FRAMES, dtype=np.bool_), np.arange(float(FRAMES)))


def apart(frames: Frames, a: State, b: State) -> np.ndarray:
    """(F,) degrees, the largest rotation of a joint between two states."""
    layout, given = frames.problem.layout, frames.given
    return np.degrees(largest_changes(departures(layout, given, a), departures(layout, given, b)))


def excess(frames: Frames, state: State) -> np.ndarray:
    return frames.problem.evaluate(frames.given, state).excess(frames.limits.position, frames.limits.angle)


def ranges_of(seed: int) -> list[np.ndarray]:
    """Some ranges, and all chunks of 50 frames."""
    rng = np.random.default_rng(seed)
    found = [np.arange(first, min(first + 50, FRAMES)) for first in range(0, FRAMES, 50)]
    for first in rng.integers(0, FRAMES - 10, 4):
        found.append(np.arange(first, min(first + rng.integers(6, 90), FRAMES)))
    return found


@pytest.mark.mass
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [4, 12, 30])
@pytest.mark.parametrize("seed", [2])
def test_ranges_agree_where_no_frame_is_named(kind, count, seed):
    frames = scene(kind, count, seed)
    whole = settled(solve_sequence(frames))
    for some in ranges_of(seed):
        own = frames.at(some)
        part = settled(solve_sequence(own))
        met = (whole.excess[some] <= 1.0) | (part.excess <= 1.0)
        same = met & ~whole.led[some] & ~part.led
        most = AT_LIMITS if kind == "cones" else AGREE
        assert apart(own, whole.state.at(some), part.state)[same].max(initial=0.0) < most


@pytest.mark.mass
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"cones"}))
@pytest.mark.parametrize("count", [4, 12])
@pytest.mark.parametrize("seed", [2, 3])
def test_frames_are_named_that_do_not_end_where_they_would_alone(kind, count, seed):
    """One by one, in a batch of its own, each frame is solved from its base pose once more."""
    frames = scene(kind, count, seed)
    whole = settled(solve_sequence(frames))
    alone = solve_batch(frames.problem, frames.given, frames.base, frames.limits)
    differ = apart(frames, whole.state, alone.state)
    met = whole.excess <= 1.0
    assert differ[met & ~whole.led].max(initial=0.0) < AGREE
    assert (met >= whole.led).all()
    two = whole.apart > 0.0
    assert (excess(frames, whole.state)[two] <= 1.0).all()
    assert (excess(frames, alone.state)[two] <= 1.0).all()
    np.testing.assert_allclose(differ[two], np.degrees(whole.apart[two]), rtol=1e-2, atol=AGREE)


def leg(bend: np.ndarray) -> Frames:
    """A base that is bent by 0.2 radians, and should be by these angles; the first frame is fixed."""
    up = (0.0, 1.0, 0.0)
    skeleton = Skeleton(
        [Joint("thigh"), Joint("shin", 0, up, limit=Hinge((1.0, 0.0, 0.0), -2.0, 2.0)), Joint("foot", 1, up)]
    )
    goal = PositionGoal("foot", (0.0, 2.0, 0.0), offset=(0.0, 0.0, 0.0))
    problem = LeastSquaresProblem(skeleton, [goal], [joint.limit for joint in skeleton.joints])
    bent = (Quaternion(X, -0.1), Quaternion(X, 0.2), Quaternion())
    poses = Poses.of([Pose(bent, (Vector(),) * 3)] * len(bend))
    targets = np.array([0.0 * bend, 2.0 * np.cos(0.5 * bend), 0.0 * bend])
    given = problem.given(Bones.of(skeleton), poses, [targets], poses)
    base = start_state(problem.layout, given, poses)
    stop = Limits(np.full(len(bend), 1e-4), 1e-3, 40)
    fixed = np.arange(len(bend)) == 0
    return Frames(problem, given, base, stop, fixed, np.arange(float(len(bend))))


def test_frames_that_follow_one_to_the_other_side_are_named():
    """The first frame stands as the chunk before has left it: on the side that base poses do not take."""
    bend = 0.8 + 0.2 * np.sin(np.arange(40) / 6.0)
    frames = leg(bend)
    alone = solve_batch(frames.problem, frames.given, frames.base, frames.limits)
    side = np.sign(alone.state.angles[0, 0])
    layout, base = frames.problem.layout, frames.base
    balls, angles = base.rotations[:, layout.ball_rows].copy(), base.angles.copy()
    balls[:, 0, 0] = Quaternion(X, 0.5 * side * bend[0])[:]
    angles[0, 0] = -side * bend[0]
    held = rebuilt(layout, frames.given, base, balls, angles, base.slides)
    frames = Frames(frames.problem, frames.given, held, frames.limits, frames.fixed, frames.times)
    solved = settled(solve_sequence(frames))
    assert (side * solved.state.angles[0] < -0.5).all()
    assert solved.led.tolist() == [False] + [True] * 39
    np.testing.assert_allclose(solved.apart[1:], 2.0 * bend[1:], rtol=1e-2)


def test_what_other_starts_have_found_is_led():
    frames = leg(0.8 + 0.2 * np.sin(np.arange(40) / 6.0))
    solved = settled(solve_sequence(frames, from_base=False))
    assert (solved.excess[1:] <= 1.0).all()
    assert solved.led.tolist() == [False] + [True] * 39
    assert not solved.apart.any()
