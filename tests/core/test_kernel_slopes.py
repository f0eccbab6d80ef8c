"""What the kernel sees of a pose: errors beside what goals measure, slopes beside differences."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from chains import legal_pose, random_couplings, random_skeleton, random_slides, shifted, straight, tail
from mathutils import Quaternion, Vector
from seeds import few_and_all

from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
    centre_of_mass,
)
from ccd_rig.kernel import Problem, evaluate_at, set_search
from ccd_rig.kernel.goals import BEND_RANGE, LEVER
from ccd_rig.limits.shapes import Hinge, Limit
from ccd_rig.settings import SolverSettings
from ccd_rig.skeleton.joints import Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.pose_search import PoseSearch
from ccd_rig.solvers.problem_tables import (
    Bones,
    GoalSettings,
    measure,
    problem_tables,
    reach_of_goals,
    stored_targets,
    target_rows,
    windowed,
)

KINDS = ("position", "orientation", "direction", "pole", "balance")


def varied(rng: random.Random, count: int) -> Skeleton:
    """A random tree of ball joints and hinges that slide, roll or do not inherit rotation; all have mass."""
    skeleton = random_skeleton(rng, count, tree=rng.random() < 0.5)
    changes = {}
    for joint in skeleton.joints:
        limit = joint.limit if isinstance(joint.limit, Hinge) else None
        fields = {"mass": rng.uniform(0.1, 2.0), "inherit_rotation": rng.random() > 0.2, "limit": limit}
        changes[joint.name] = {**fields, "slides": random_slides(rng), "max_step": math.pi}
    return random_couplings(skeleton.replace(changes), rng)


def goal_of(kind: str, skeleton: Skeleton, rng: random.Random) -> Goal:
    """A goal of a kind on a random joint, which a random pose meets."""
    joint = rng.choice(skeleton.joints)
    transforms = forward_kinematics(skeleton, legal_pose(skeleton, rng))
    here, weight = transforms[skeleton.index(joint.name)], rng.uniform(0.5, 2.0)
    if kind == "position":
        offset = Vector([rng.uniform(-1.0, 1.0) for _ in range(3)])
        return PositionGoal(joint.name, here.point(offset), offset, weight)
    if kind == "orientation":
        return OrientationGoal(joint.name, here.rotation, weight)
    if kind == "direction":
        axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)])
        return DirectionGoal(joint.name, axis, here.rotation @ axis, weight)
    if kind == "pole":
        chain = skeleton.chain(len(skeleton) - 1)
        root = skeleton.joints[chain[rng.randrange(len(chain) - 1)]]
        return PoleGoal(
            root.name, skeleton.joints[-1].name, [rng.uniform(-5.0, 5.0) for _ in range(3)], weight
        )
    axes = rng.choice(((True, True, False), (True, False, False), (True, True, True)))
    direction = rng.choice((None, Vector([rng.gauss(0.0, 1.0) for _ in range(3)])))
    return BalanceGoal(centre_of_mass(skeleton, transforms), axes, weight, direction=direction)


class Measured:
    """Goals of a skeleton as the kernel sees them, at any pose in double precision."""

    def __init__(self, skeleton: Skeleton, goals: Sequence[Goal], pose: Pose) -> None:
        self.skeleton, self.movable = skeleton, PoseSearch(skeleton, goals, SolverSettings()).movable
        self.limits: list[Limit | None] = [joint.limit for joint in skeleton.joints]
        tables = problem_tables(skeleton, goals, self.limits, self.movable, [0.0] * len(skeleton))
        self.metric, self.mobility = tables["metric"].reshape(-1, 4), tables["mobility"].reshape(-1, 3)
        self.reach = reach_of_goals(skeleton, goals)
        self.problem = Problem(tables, self.reach, 1e-4, 1e-3)
        set_search(self.problem, 1, 1.0, 0.0, 0.0, 1e-6, 1, 1, False, False, False, False)
        self.rotations = np.array([[q[:] for q in pose.rotations]], dtype=np.float64)
        self.rotations /= np.linalg.norm(self.rotations, axis=2, keepdims=True)
        self.translations = np.array([[t[:] for t in pose.translations]], dtype=np.float64)
        bones, extensions = Bones.of(skeleton), GoalSettings.of([goals]).extensions
        self.targets = target_rows(
            skeleton, goals, stored_targets(goals), self.translations, bones, extensions, windowed(goals)
        )

    def residual(self, rotations: np.ndarray, translations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows) residuals and (rows, columns) their slopes."""
        p = self.problem
        values, slope = np.zeros(p.rows), np.zeros((p.rows, p.columns))
        evaluate_at(p, rotations.reshape(1, -1), translations.reshape(1, -1), self.targets, values, slope)
        return values, slope

    def moved(self, column: int, by: float) -> tuple[np.ndarray, np.ndarray]:
        """The pose with one unknown moved: a hinge's angle, a turn about an axis before the joint's, a shift.

        Axes are those of the joint's metric. Unknowns count in parts of mobilities; shifts in the reach too.
        """
        rotations, translations, at = self.rotations.copy(), self.translations.copy(), 0
        for i in self.movable:
            joint, limit = self.skeleton.joints[i], self.limits[i]
            axes = [limit.axis] if isinstance(limit, Hinge) else rotation_matrix(self.metric[i]).T
            if column < at + len(axes):
                half = 0.5 * by * self.mobility[i, column - at]
                turn = np.array([math.cos(half), *(math.sin(half) * np.array(axes[column - at]))])
                rotations[0, i] = product(turn, rotations[0, i])
                return rotations, translations
            at += len(axes)
            if column < at + len(joint.slides):
                shift = by * self.reach * self.mobility[i, 0]
                translations[0, i] += shift * np.array(joint.slides[column - at].axis)
                return rotations, translations
            at += len(joint.slides)
        raise AssertionError(column)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of two quaternions."""
    real = a[0] * b[0] - a[1:] @ b[1:]
    return np.array([real, *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])


def rotation_matrix(q: np.ndarray) -> np.ndarray:
    """(3, 3) of a unit quaternion."""
    axes = [product(product(q, np.array([0.0, *axis])), q * [1, -1, -1, -1])[1:] for axis in np.eye(3)]
    return np.array(axes).T


def cases(kinds: Sequence[str], seed: object) -> tuple[Skeleton, list[Goal], Pose]:
    rng = random.Random(f"{kinds} {seed}")
    skeleton = varied(rng, rng.randrange(3, 9))
    while len(skeleton.chain(len(skeleton) - 1)) < 2:
        skeleton = varied(rng, 6)
    goals = [goal_of(kind, skeleton, rng) for kind in kinds]
    return skeleton, goals, shifted(skeleton, legal_pose(skeleton, rng), rng)


@pytest.mark.parametrize("seeds", few_and_all(4, 25))
@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_finite_differences(kind: str, seeds: range) -> None:
    compared = 0
    for seed in seeds:
        seen = Measured(*cases((kind, "position"), seed))
        values, slope = seen.residual(seen.rotations, seen.translations)
        # A bend in its play asks for nothing: the slope then says what would take it out.
        first = 1 if kind == "pole" and values[0] == 0.0 else 0
        for column in range(seen.problem.columns):
            ends = [seen.residual(*seen.moved(column, side))[0] for side in (1e-6, -1e-6)]
            difference = (ends[0] - ends[1]) / 2e-6
            if is_at_a_limit(seen, column):
                continue
            compared += first == 0
            np.testing.assert_allclose(
                slope[first:, column], difference[first:], rtol=2e-5, atol=2e-6, err_msg=f"{seed}"
            )
    assert compared > 3 * len(seeds)


@pytest.mark.parametrize("count", [0, 2, 3])
@pytest.mark.parametrize("free", range(4))
def test_slopes_of_reach_windows_are_finite_differences(count: int, free: int) -> None:
    """Behind those of the goal, from inside; a joint of the chain does not inherit rotation."""
    rng = random.Random(f"{count} {free}")
    skeleton = straight(4).replace({f"joint{free}": {"inherit_rotation": False}})
    goal = PositionGoal("joint3", (1.0, 2.0, 1.0), max_extension=0.99, extension_joints=count)
    seen = Measured(skeleton, [goal], legal_pose(skeleton, rng))
    values, slope = seen.residual(seen.rotations, seen.translations)
    assert values[3] < 0.0
    for column in range(seen.problem.columns):
        ends = [seen.residual(*seen.moved(column, by))[0] for by in (1e-6, -1e-6)]
        np.testing.assert_allclose(slope[:, column], (ends[0] - ends[1]) / 2e-6, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("turn", [-2.5, 2.5])
@pytest.mark.parametrize("sine", [0.3, 0.45])
def test_slopes_of_poles_near_the_line_are_finite_differences(sine: float, turn: float) -> None:
    """The play goes with the sine of the angle from the chain's line to its pole."""
    skeleton = straight(4)
    bent = {0: Quaternion((0.9, 0.1, 0.2), 0.4), 2: Quaternion((0.1, 0.2, 0.9), 0.7)}
    pose = Pose.rest(skeleton).with_rotations({**bent, 3: Quaternion((0.3, -0.1, 0.9), 0.5)})
    _, root, middle, _ = (place.translation for place in forward_kinematics(skeleton, pose))
    line = (tail(skeleton, pose) - root).normalized()
    bend = middle - root - line.dot(middle - root) * line
    side = sine * (Quaternion(line, turn) @ bend.normalized()) + math.sqrt(1.0 - sine * sine) * line
    goals = [PoleGoal("joint1", "joint3", root + 4.0 * side), PositionGoal("joint3", (1.0, 2.0, 1.0))]
    seen = Measured(skeleton, goals, pose)  # the position moves the chain's root too
    values, slope = seen.residual(seen.rotations, seen.translations)
    assert values[0] * turn < 0.0
    for column in range(seen.problem.columns):
        ends = [seen.residual(*seen.moved(column, by))[0] for by in (1e-6, -1e-6)]
        np.testing.assert_allclose(slope[:, column], (ends[0] - ends[1]) / 2e-6, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("turn", [-0.4, 0.9])
@pytest.mark.parametrize("bend", [0.06, 0.4])
def test_slopes_of_a_pole_in_its_play_are_those_of_the_whole_angle(bend: float, turn: float) -> None:
    """The pole asks for nothing there. A bend that is not clear counts less."""
    skeleton = straight(4)
    bent = {0: Quaternion((0.9, 0.1, 0.2), 0.4), 2: Quaternion((0.1, 0.2, 0.9), bend)}
    pose = Pose.rest(skeleton).with_rotations(bent)
    _, root, middle, _ = (place.translation for place in forward_kinematics(skeleton, pose))
    line = (tail(skeleton, pose) - root).normalized()
    across = middle - root - line.dot(middle - root) * line
    sine = 0.3  # between IN_LINE and OFF_LINE
    side = sine * (Quaternion(line, turn) @ across.normalized()) + math.sqrt(1.0 - sine * sine) * line
    target = root + 4.0 * side
    goals = [PoleGoal("joint1", "joint3", target), PositionGoal("joint3", (1.0, 2.0, 1.0))]
    seen = Measured(skeleton, goals, pose)

    def whole_angle(rotations: np.ndarray, _: np.ndarray) -> float:
        heads, turned = [np.zeros(3)], np.array([1.0, 0.0, 0.0, 0.0])
        for rotation in rotations[0]:
            turned = product(turned, rotation)
            heads.append(heads[-1] + rotation_matrix(turned)[:, 1])
        _, root, middle, last, end = heads
        line, between, to_pole = end - root, middle + last - 2.0 * root, np.array(target) - root
        line /= np.linalg.norm(line)
        between -= line * (line @ between)
        part = min(float(np.linalg.norm(between)) / (BEND_RANGE * 2.0 * 3.0), 1.0)  # two heads, three bones
        angle = math.atan2(
            line @ np.cross(to_pole, between), to_pole @ between - (to_pole @ line) * (line @ between)
        )
        return part * part * (3.0 - 2.0 * part) * angle

    values, slope = seen.residual(seen.rotations, seen.translations)
    assert values[0] == 0.0
    for column in range(seen.problem.columns):
        ends = [whole_angle(*seen.moved(column, by)) for by in (1e-6, -1e-6)]
        expected = LEVER * (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(slope[0, column], expected, rtol=2e-5, atol=2e-6)


def is_at_a_limit(seen: Measured, column: int) -> bool:
    """Whether an unknown is so near an end of its range that it cannot be moved to both sides."""
    for side in (1e-5, -1e-5):
        rotations, translations = seen.moved(column, side)
        for i in seen.movable:
            joint = seen.skeleton.joints[i]
            turned, shift = Quaternion(rotations[0, i]), Vector(translations[0, i])
            if joint.limit is not None and joint.allowed(turned).rotation_difference(turned).angle > 1e-6:
                return True
            if any(not s.lower <= Vector(s.axis).dot(shift) <= s.upper for s in joint.slides):
                return True
    return False


@pytest.mark.parametrize("seeds", few_and_all(20, 60))
@pytest.mark.parametrize("kind", KINDS)
def test_residuals_grow_with_what_goals_measure(kind: str, seeds: range) -> None:
    """Distances in parts of the reach, angles times one lever; both times the root of the weight."""
    levers = []
    for seed in seeds:
        skeleton, (goal,), pose = cases((kind,), seed)
        seen = Measured(skeleton, [goal], pose)
        values, _ = seen.residual(seen.rotations, seen.translations)
        error = measure(goal, skeleton, forward_kinematics(skeleton, pose))
        size = float(np.linalg.norm(values)) / math.sqrt(goal.weight)
        if error.angle > 0.1:
            levers.append(size / error.angle)
        elif error.angle == 0.0:
            assert size == pytest.approx(error.distance / seen.reach, abs=1e-5)
    assert (
        levers == pytest.approx([levers[0]] * len(levers), rel=1e-3)
        if levers
        else kind in ("position", "balance")
    )
